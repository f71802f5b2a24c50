"""Writes the score of a whole run into the documentation, between two markers."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.peers.incidents import situations
from tests.peers.incidents.verdicts import Judgement

PAGE = Path(__file__).parents[3] / "docs" / "trace-request.md"
BEGIN = "<!-- written by `MAESTROPY_WRITE_DOCS=1 make incidents`: begin -->"
END = "<!-- written by `MAESTROPY_WRITE_DOCS=1 make incidents`: end -->"
STACKS = {"go": "Go", "python": "this project"}
"""The words for whose server and agent it is."""

Scores = Mapping[str, Sequence[Judgement]]


def page(text: str, scores: Scores) -> str:
    """Return the page with this score in it."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{section(scores)}\n{END}{after}"


def section(scores: Scores) -> str:
    """Return the table of all scenes, and every wrong situation."""
    rows = [
        "",
        f"| broker, servers, verbosity | {' | '.join(STACKS[kind] for kind in scores)} | situations |",
        f"|---|{'---|' * (len(scores) + 1)}",
    ]
    for name, scene in situations.SCENES.items():
        cells = [ratio([each for each in judged if each.situation.scene == name]) for judged in scores.values()]
        names = [each.name for each in situations.SITUATIONS if each.scene == name]
        rows.append(f"| {scene} | {' | '.join(cells)} | {'; '.join(names)} |")
    rows.append(f"| all | {' | '.join(ratio(judged) for judged in scores.values())} | |")
    return "\n".join([*rows, "", *wrong_ones(scores)])


def ratio(judged: Sequence[Judgement]) -> str:
    return f"{sum(each.is_right for each in judged)} of {len(judged)}"


def wrong_ones(scores: Scores) -> list[str]:
    lines = []
    for kind, judged in scores.items():
        for each in judged:
            if not each.is_right:
                reasons = ". ".join((each.not_made, *each.wrong) if each.not_made else each.wrong)
                lines.append(f"- {STACKS[kind]}: *{each.situation.name}* ({each.situation.made}). {reasons}")
    return ["Wrong:", "", *lines, ""] if lines else ["None is wrong.", ""]


def write(scores: Scores) -> None:
    """Write the page."""
    PAGE.write_text(page(PAGE.read_text(), scores))
