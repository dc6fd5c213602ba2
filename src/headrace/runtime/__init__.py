"""The one loop where schedule, execute and store meet, and the ways into it."""
