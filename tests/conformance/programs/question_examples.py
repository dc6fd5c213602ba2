"""Every kind shows an example of itself."""

from edsl import (
    QuestionBudget,
    QuestionCheckBox,
    QuestionDict,
    QuestionExtract,
    QuestionFreeText,
    QuestionLikertFive,
    QuestionLinearScale,
    QuestionList,
    QuestionMatrix,
    QuestionMultipleChoice,
    QuestionNumerical,
    QuestionRank,
    QuestionTopK,
    QuestionYesNo,
)

kinds = [
    QuestionBudget,
    QuestionCheckBox,
    QuestionDict,
    QuestionExtract,
    QuestionFreeText,
    QuestionLikertFive,
    QuestionLinearScale,
    QuestionList,
    QuestionMatrix,
    QuestionMultipleChoice,
    QuestionNumerical,
    QuestionRank,
    QuestionTopK,
    QuestionYesNo,
]

value = [kind.example().question_type for kind in kinds]
