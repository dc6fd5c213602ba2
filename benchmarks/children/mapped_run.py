"""One prompt per row, through the library: what the command is compared with."""

import sys

from headrace import Job, Model

if __name__ == "__main__":
    path, data, text = sys.argv[1:]
    Job.map(text, data).by(Model("test", canned_response="good")).run(path)
