"""retrieve: which cards hold for a kernel, why, and what the near ones need first."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from klineage.errors import KlineageError

from klineage_tui.commands.common import Run, add_json, print_json, say
from klineage_tui.commands.libraries import add_libraries, add_target, opened_libraries, target_from

if TYPE_CHECKING:
    from klineage.skill.retrieval import Hit, Retrieved
    from klineage.skill.retrieval.paths import Path as Way


def retrieve_command(parser: argparse.ArgumentParser) -> Run:
    add_target(parser)
    add_libraries(parser)
    parser.add_argument(
        "-k", type=int, default=5, metavar="N", help="the best N of each dimension, united (default: 5)"
    )
    parser.add_argument(
        "--near", type=int, default=5, metavar="N", help="tell N cards that do not hold yet (default: 5)"
    )
    parser.add_argument(
        "--all", action="store_true", help="also hypotheses, which no trial has admitted; marked"
    )
    parser.add_argument("--why", metavar="CARD", help="instead: why this one card is found or not")
    add_json(parser)
    return _retrieve


def _retrieve(arguments: argparse.Namespace) -> int:
    from klineage.interop.retrieved import hit_row, retrieved_row
    from klineage.skill.retrieval import explain, retrieve
    from klineage.skill.retrieval.index_file import open_indexes
    from klineage.skill.retrieval.paths import order_of, paths

    if arguments.k < 1 or arguments.near < 0:
        raise KlineageError("-k must be at least 1, and --near at least 0")
    target = target_from(arguments)
    with opened_libraries(arguments) as libraries:
        opened = open_indexes(libraries)
        if arguments.why:
            hit = explain(opened.index, target, arguments.why)
            if hit is None:
                raise KlineageError(
                    f"there is no card {arguments.why!r} here; klineage card list shows what there is"
                )
            print_json(hit_row(hit)) if arguments.json else _say_hit(hit)
            return 0
        found = retrieve(opened.index, target, k=arguments.k, near=arguments.near, hypotheses=arguments.all)
        ways = paths(opened.index, target, order_of(*libraries), hypotheses=arguments.all)
    if arguments.json:
        print_json({**retrieved_row(found, ways), "problems": opened.problems})
    else:
        _say(found, ways, opened.problems)
    return 0


def _say(found: Retrieved, ways: tuple[Way, ...], problems: Mapping[str, str]) -> None:
    from klineage.interop.retrieved import lines

    for line in lines(found, ways):
        say(line)
    for problem in problems.values():
        say(f"left out: {problem}")


def _say_hit(hit: Hit) -> None:
    from klineage.interop.retrieved import hit_lines

    for line in hit_lines(hit):
        say(line)


COMMANDS = {"retrieve": retrieve_command}
