"""Plays the incident lab: makes every situation on a real stack, traces its logs, and scores the tracer.

    python -m tests.peers.incidents.play
    python -m tests.peers.incidents.play --stack python --scene mqtt2 --keep FOLDER
    python -m tests.peers.incidents.play --stack go --again FOLDER      # trace logs that were kept, make nothing

The truths are in `situations.py`, how they are made in `scenes.py`. With MAESTROPY_WRITE_DOCS=1 a whole run writes its
score into docs/trace-request.md.
"""

import argparse
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from tests.peers import kube_build, peer_build, peer_postgres
from tests.peers.incidents import scenes, score_page, situations
from tests.peers.incidents.lab import Ground, lab
from tests.peers.incidents.truth import Situation
from tests.peers.incidents.verdicts import Answers, Judgement, judge
from tests.peers.kube_cluster import kube_cluster

Moments = dict[tuple[str, str], Path]
"""The folder of logs of each moment of each scene."""


def make(kind: str, names: Iterable[str], folder: Path) -> tuple[Moments, dict[str, str]]:
    """Play the scenes; return the collected logs, and which scenes broke off with their reason."""
    moments: Moments = {}
    broken: dict[str, str] = {}
    programs, control_plane = peer_build.programs(print), kube_build.control_plane(print)
    with ExitStack() as stack:
        place = stack.enter_context(tempfile.TemporaryDirectory(prefix="lab-postgres-", ignore_cleanup_errors=True))
        postgres = stack.enter_context(peer_postgres.cluster(Path(place)))
        kube = folder / "kube"
        kube.mkdir(parents=True)
        cluster = stack.enter_context(kube_cluster(control_plane, folder=kube))
        ground = Ground(programs=programs, cluster=cluster, postgres=postgres, folder=folder, kind=kind)
        for name in names:
            begun = time.monotonic()
            with lab(ground, situations.SCENES[name]) as running:
                try:
                    for play in scenes.PLAYS[name]:
                        play(running)
                except Exception:  # what was collected before is still worth tracing
                    broken[name] = traceback.format_exc(limit=-4)
                    print(f"scene {name} broke off:\n{broken[name]}", flush=True)
            moments |= {(name, moment): place for moment, place in running.moments.items()}
            print(f"{time.monotonic() - begun:6.1f} s  {name}: {situations.SCENES[name]}", flush=True)
    return moments, broken


def kept(folder: Path) -> Moments:
    """Return the logs that an earlier run kept."""
    return {(path.parts[-3], path.name): path for path in folder.glob("*/moments/*") if path.is_dir()}


def score(kind: str, moments: Moments, names: Iterable[str]) -> list[Judgement]:
    """Trace every moment and judge every situation."""
    answers: dict[tuple[str, str], Answers] = {}
    judged = []
    for situation in chosen(kind, names):
        where = situation.scene, situation.moment
        if where not in moments:
            judged.append(Judgement(situation=situation, not_made="its logs were not collected"))
            continue
        if where not in answers:
            answers[where] = Answers(moments[where])
        judged.append(judge(situation, answers[where]))
    return judged


def chosen(kind: str, names: Iterable[str]) -> list[Situation]:
    wanted = set(names)
    return [each for each in situations.SITUATIONS if kind in each.stacks and each.scene in wanted]


def report(kind: str, judged: list[Judgement]) -> str:
    """Return the score, with every wrong situation named."""
    lines = []
    for each in judged:
        mark = "right" if each.is_right else "NOT MADE" if each.not_made else "WRONG"
        situation = each.situation
        lines.append(f"{mark:9} {situations.SCENES[situation.scene]!s:24} {situation.moment:20} {situation.name}")
        lines += [f"            {reason}" for reason in (each.not_made, *each.wrong) if reason]
    right = sum(each.is_right for each in judged)
    lines.append(f"{kind}: {right} of {len(judged)} situations right")
    return "\n".join(lines)


def play(kind: str, options: argparse.Namespace) -> tuple[list[Judgement], dict[str, str]]:
    """Make the situations with one kind of programs, or take kept logs, and score the tracer."""
    names = list(options.scene or situations.SCENES)
    with tempfile.TemporaryDirectory(prefix="incidents-", ignore_cleanup_errors=True) as place:
        folder = (options.keep or Path(place)) / kind
        begun = time.monotonic()
        moments, broken = (kept(options.again / kind), {}) if options.again else make(kind, names, folder)
        made = time.monotonic()
        judged = score(kind, moments, names)
    print(report(kind, judged))
    print(f"made in {made - begun:.0f} s, traced in {time.monotonic() - made:.0f} s", flush=True)
    return judged, broken


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--stack", choices=["go", "python", "both"], default="both", help="whose server and agent")
    parser.add_argument("--scene", action="append", choices=list(situations.SCENES), help="only this one; repeat it")
    parser.add_argument("--again", type=Path, help="trace the logs kept in this folder, and make nothing")
    parser.add_argument("--keep", type=Path, help="a folder for the collected logs")
    options = parser.parse_args(arguments)
    kinds = ["go", "python"] if options.stack == "both" else [options.stack]
    scores: dict[str, list[Judgement]] = {}
    all_broken: dict[str, str] = {}
    for kind in kinds:
        scores[kind], broken = play(kind, options)
        all_broken |= broken
    is_whole = options.stack == "both" and not options.scene and not all_broken
    if os.environ.get("MAESTROPY_WRITE_DOCS") and is_whole:
        score_page.write(scores)
    right = all(each.is_right for judged in scores.values() for each in judged)
    return 0 if right and not all_broken else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
