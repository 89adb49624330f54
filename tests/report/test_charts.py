"""Drawings: whole SVG, the right marks and labels, nothing from outside."""

from __future__ import annotations

import itertools
import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaketable.core.errors import BadInput, MissingExtra
from shaketable.core.results import Figure, Result
from shaketable.report.charts import assign_page_colors, draw_svg
from shaketable.report.charts.lines import MAX_SLOPE_LINES
from shaketable.report.colours import (
    DARK_MODE_COLORS,
    DIVERGING_RAMP,
    GAIN_COLOR,
    INK_COLORS,
    LOSS_COLOR,
    NEUTRAL_COLOR,
    PALETTE,
    SEQUENTIAL_RAMP,
    choose_ink,
    contrast_ratio,
    interpolate_color,
)
from shaketable.report.layout import choose_rank_ticks, position_labels, spread_values

from .samples import HOSTILE, SYSTEMS, hostile, ordinary, scores

SVG = "{http://www.w3.org/2000/svg}"


def svg(kind: str, table: pd.DataFrame, x: str, y: str, color: str = "", **more: str) -> ElementTree.Element:
    return ElementTree.fromstring(draw_svg(Figure(kind, "t", "A title", x, y, color, **more), table))


def marks(root: ElementTree.Element, mark: str) -> list[ElementTree.Element]:
    """Return the marks of the data, without axes and legends."""
    groups = [g for g in root.iter(f"{SVG}g") if {f"mark-{mark}", "role-mark"} <= set(g.get("class", "").split())]
    return [child for group in groups for child in group]


def texts(root: ElementTree.Element) -> list[str]:
    return ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]


def hints(root: ElementTree.Element) -> list[str]:
    return [node.text or "" for node in root.iter(f"{SVG}title")]


def test_bars_one_for_each_category() -> None:
    root = svg("bars", pd.DataFrame({"who": ["bm25", "ql"], "score": [0.25, -0.5]}), "who", "score")
    assert len(marks(root, "rect")) == 2
    assert {"bm25", "ql", "score"} <= set(texts(root))
    assert hints(root) == ["who: bm25; score: 0.2500", "who: ql; score: -0.5000"]
    assert len(marks(root, "rule")) == 1  # zero
    assert root.get("aria-label") == "A title"


def test_bars_have_whiskers_where_an_interval_is_known() -> None:
    table = pd.DataFrame({"who": ["a", "b"], "s": [0.2, 0.4], "low": [0.1, np.nan], "high": [0.3, np.nan]})
    assert len(marks(svg("bars", table, "who", "s"), "rule")) == 2  # zero, and that of a


def test_an_interval_is_drawn_for_its_own_column_only() -> None:
    table = pd.DataFrame({"who": ["a"], "difference": [0.2], "low": [0.1], "high": [0.3], "reward": [0.5]})
    assert len(marks(svg("bars", table, "who", "reward"), "rule")) == 1  # zero
    assert len(marks(svg("bars", table, "who", "difference"), "rule")) == 2
    named = table.assign(**{"reward low": [0.4], "reward high": [0.6]})
    assert hints(svg("bars", named, "who", "reward")) == ["who: a; reward: 0.5000; 95 %: 0.400 to 0.600"]
    assert len(marks(svg("scatter", named, "difference", "reward", "who"), "rule")) == 1


def test_lines_start_at_zero_where_a_reader_expects_it_and_have_bands() -> None:
    table = pd.DataFrame(
        {"x": [1, 2, 3], "share": [20.0, 50.0, 90.0], "low": [10.0, 40.0, 80.0], "high": [30.0, 60.0, 95.0]}
    )
    root = svg("lines", table, "x", "share")
    assert "0" in texts(root)
    assert len(marks(root, "area")) == 1
    assert "0" not in texts(svg("lines", table.assign(share=[80.0, 85.0, 90.0], low=79.0, high=91.0), "x", "share"))


def test_points_are_named_by_a_label_and_coloured_by_a_class() -> None:
    table = pd.DataFrame(
        {"x": [1.0, 2.0, 3.0], "y": [1.0, 3.0, 2.0], "class": ["old", "old", "new"], "who": ["a", "b", "c"]}
    )
    root = svg("scatter", table, "x", "y", "class", label="who")
    assert {"a", "b", "c", "old", "new"} <= set(texts(root))
    assert len({mark.get("fill") for mark in marks(root, "symbol")}) == 2


def test_percentages_have_one_decimal_in_cells_and_hints() -> None:
    table = pd.DataFrame({"who": ["a"], "attack": ["word"], "drop %": [-12.345], "queries": [50]})
    root = svg("heatmap", table, "who", "attack", "drop %")
    assert "-12.3" in texts(root)
    assert hints(root) == ["drop %: -12.3; who: a; attack: word; queries: 50"]


def test_marks_carry_their_key_values() -> None:
    table = pd.DataFrame({"who": ["a", 'b"<'], "attack": ["word", "1-char"], "drop": [1.0, 2.0]})
    figure = Figure("heatmap", "t", "A title", "who", "attack", "drop")
    root = ElementTree.fromstring(draw_svg(figure, table, key_columns=("who", "attack")))
    assert [mark.get("data-at") for mark in marks(root, "rect")] == ['["a", "word"]', '["b\\"<", "1-char"]']
    assert "data-at" not in draw_svg(figure, table)


def test_bars_in_groups_have_a_legend() -> None:
    table = pd.DataFrame({"edit": ["x", "x", "y", "y"], "who": ["a", "b"] * 2, "s": [0.1, 0.2, 0.3, 0.4]})
    root = svg("bars", table, "edit", "s", "who")
    assert [bar.get("fill") for bar in marks(root, "rect")] == [PALETTE[0], PALETTE[1]] * 2
    assert {"a", "b", "x", "y"} <= set(texts(root))


def test_lines_are_named_at_their_ends() -> None:
    table = pd.DataFrame({"alpha": [0, 5, 0, 5], "risk": [0.1, 0.2, 0.3, 0.2], "who": ["a", "a", "b", "b"]})
    root = svg("lines", table, "alpha", "risk", "who")
    assert len(marks(root, "line")) == 2
    assert len(marks(root, "symbol")) == 4
    assert [text.text for text in marks(root, "text")] == ["a", "b"]


def test_profile_sorts_topics_by_their_mean() -> None:
    table = pd.DataFrame({"q": ["hard", "easy", "mid"] * 2, "s": [0.1, 0.9, 0.5, 0.0, 0.8, 0.6], "who": list("aaabbb")})
    root = svg("profile", table, "q", "s", "who")
    assert [text for text in texts(root) if text in ("hard", "mid", "easy")] == ["hard", "mid", "easy"]
    assert len(marks(root, "line")) == 2
    assert len(marks(root, "symbol")) == 6


@pytest.mark.parametrize("color", ["system", ""])
def test_profile_of_many_topics_names_none_of_them(color: str) -> None:
    table = scores(300) if color else scores(300, ("bm25",))
    root = svg("profile", table, "query", "nDCG@10", color)
    assert not [text for text in texts(root) if re.fullmatch(r"q\d+", text)]
    assert len(marks(root, "line")) == 2 * (len(SYSTEMS) if color else 1)  # each topic, and the running mean
    assert any("300, sorted by mean nDCG@10" in text for text in texts(root))
    assert len(ElementTree.tostring(root)) < 60_000


def test_scatter_names_points_that_are_series_of_their_own() -> None:
    table = pd.DataFrame({"x": [0.1, 0.2, 0.2], "y": [1.0, 2.0, 2.0], "who": list("abc")})
    root = svg("scatter", table, "x", "y", "who")
    assert len(marks(root, "symbol")) == 3
    assert [text.text for text in marks(root, "text")] == ["a", "b", "c"]
    grouped = svg("scatter", pd.concat([table, table]), "x", "y", "who")
    assert len(marks(grouped, "symbol")) == 6
    assert not marks(grouped, "text")
    assert {"a", "b", "c"} <= set(texts(grouped))


def test_scatter_joins_points_and_writes_marks() -> None:
    places = {"x": [0.0, 1.0, 2.0, 3.0], "y": [1.0, 2.0, 2.0, 0.0]}
    table = pd.DataFrame(places | {"pair": ["a", None, "a", None], "star": ["", "", "", "★"]})
    root = svg("scatter", table, "x", "y", join="pair", mark="star")
    (line,) = marks(root, "line")
    assert len(re.findall("[ML]", line.get("d", ""))) == 2
    assert len(marks(root, "symbol")) == 3
    assert [text.text for text in marks(root, "text")] == ["★"]
    with pytest.raises(BadInput, match="no column 'absent'"):
        svg("scatter", table, "x", "y", join="absent")


def test_scatter_shades_points_by_a_number() -> None:
    table = pd.DataFrame({"x": [0.0, 1.0, 2.0], "y": [1.0, 2.0, 0.0], "score": [-3.0, 5.0, None]})
    points = marks(svg("scatter", table, "x", "y", shade="score"), "symbol")
    low, high, without = (float(point.get("opacity", 1)) for point in points)
    assert low < high == without
    plain = {mark.get("opacity") for mark in marks(svg("scatter", table, "x", "y"), "symbol")}
    assert len(plain) == 1


def test_heatmap_writes_the_numbers_and_they_can_be_read() -> None:
    values = np.linspace(-0.2, 0.9, 12)
    table = pd.DataFrame({"x": list("abcd") * 3, "y": ["u"] * 4 + ["v"] * 4 + ["w"] * 4, "v": values})
    root = svg("heatmap", table, "x", "y", "v")
    cells, numbers = marks(root, "rect"), marks(root, "text")
    assert [text.text for text in numbers] == [f"{value:.3f}" for value in values]
    for square, text in zip(cells, numbers, strict=True):
        assert text.get("fill") in INK_COLORS
        assert contrast_ratio(square.get("fill", ""), text.get("fill", "")) >= 4.5


def test_heatmap_of_one_value() -> None:
    root = svg("heatmap", pd.DataFrame({"x": ["a"], "y": ["b"], "v": [0.5]}), "x", "y", "v")
    assert len(marks(root, "rect")) == 1


def test_waterfall_sorts_and_colours_by_sign() -> None:
    table = pd.DataFrame({"q": ["a", "b", "c", "d"], "d": [-0.2, 0.3, 0.0, 0.1]})
    root = svg("waterfall", table, "q", "d")
    assert hints(root) == ["q: b; d: 0.3000", "q: d; d: 0.1000", "q: c; d: 0.0000", "q: a; d: -0.2000"]
    assert [bar.get("fill") for bar in marks(root, "rect")] == [PALETTE[0], PALETTE[0], PALETTE[1], PALETTE[1]]
    assert "2 up, 1 down, 1 equal" in texts(root)


def test_waterfall_has_a_panel_for_each_facet() -> None:
    table = pd.DataFrame({"q": ["a", "b"] * 2, "d": [-0.2, 0.3, 0.1, 0.2], "who": ["s", "s", "t", "t"]})
    root = svg("waterfall", table, "q", "d", "who")
    assert {"s: 1 up, 1 down, 0 equal", "t: 2 up, 0 down, 0 equal"} <= set(texts(root))
    assert len(marks(root, "rect")) == 4


def test_too_many_series_are_cut_to_the_best_and_said_so() -> None:
    table = pd.DataFrame([(f"s{i:02}", x, float(i)) for i in range(30) for x in (0, 1)], columns=["who", "x", "y"])
    root = svg("lines", table, "x", "y", "who")
    assert {text.text for text in marks(root, "text")} == {f"s{i:02}" for i in range(18, 30)}
    assert any("12 of 30 values of who" in text for text in texts(root))


@pytest.mark.parametrize("last", [1, 2, 4, 9, 40])
def test_whole_numbers_have_no_ticks_between_them(last):
    table = pd.DataFrame({"round": range(1, last + 1), "share": 0.5, "who": "ql"})
    labels = [text for g in svg("lines", table, "round", "share", "who").iter(f"{SVG}text") if (text := g.text)]
    below = [label for label in labels if re.fullmatch(r"[\d.]+", label) and float(label) >= 1]
    assert below
    assert all("." not in label for label in below), below


@pytest.mark.parametrize("kind", ["bars", "lines", "profile", "scatter", "heatmap", "waterfall", "slope"])
def test_missing_and_infinite_values_are_left_out(kind: str) -> None:
    empty = pd.DataFrame({"x": [1.0, 2.0], "y": [np.nan, np.inf], "c": [np.nan, -np.inf]})
    figure = Figure(kind, "t", "Nothing", "x", "y", "c")
    assert draw_svg(figure, empty) == ""
    assert draw_svg(figure, empty.iloc[:0]) == ""
    assert draw_svg(figure, pd.DataFrame({"x": [1.0, np.nan], "y": [1.0, 1.0], "c": [1.0, 1.0]}))


def test_a_figure_that_cannot_be_drawn_is_bad_input() -> None:
    table = pd.DataFrame({"x": ["a"], "y": [1.0]})
    with pytest.raises(BadInput, match="there is no chart type 'pie'; there are bars, distribution, lines"):
        draw_svg(Figure("pie", "t", "P", "x", "y"), table)
    with pytest.raises(BadInput, match="table 't' has no column 'z'"):
        draw_svg(Figure("bars", "t", "P", "x", "z"), table)
    with pytest.raises(BadInput, match="column 'x' must have numbers"):
        draw_svg(Figure("lines", "t", "P", "x", "y"), table)


@pytest.mark.parametrize("library", ["altair", "vl_convert"])
def test_without_the_libraries_the_extra_is_named(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, library, None)
    with pytest.raises(MissingExtra, match=r"pip install 'shaketable\[report\]'"):
        draw_svg(Figure("bars", "t", "P", "x", "y"), pd.DataFrame({"x": ["a"], "y": [1.0]}))


@pytest.mark.parametrize("figure", hostile().figures, ids=lambda figure: figure.kind)
def test_hostile_texts_stay_texts(figure: Figure) -> None:
    drawn = draw_svg(figure, hostile().tables["t"])
    assert drawn
    root = ElementTree.fromstring(drawn)
    known = {"svg", "g", "path", "rect", "line", "text", "tspan", "defs", "clipPath", "title"}
    for node in root.iter():
        assert node.tag.removeprefix(SVG) in known
        for name, value in node.attrib.items():
            assert not name.startswith(("on", "{", "href", "style"))
            assert name == "aria-label" or not any(text in value for text in HOSTILE)
    shown = texts(root) + hints(root)
    assert any("<script>" in text for text in shown)
    assert any("{{ 7 * 7 }}" in text for text in shown)


def test_drawings_share_a_page_without_sharing_ids() -> None:
    ids = []
    for frame in (scores(4), scores(5)):
        drawn = draw_svg(Figure("profile", "t", "A", "query", "nDCG@10", "system"), frame)
        ids += re.findall(r' id="([^"]+)"', drawn)
        assert set(re.findall(r"url\(#([^)]+)\)", drawn)) <= set(ids)
    assert len(ids) == len(set(ids))


def test_drawing_is_deterministic() -> None:
    figure, frame = Figure("profile", "t", "A", "query", "nDCG@10", "system"), scores(9)
    assert draw_svg(figure, frame) == draw_svg(figure, frame)


def test_a_series_has_one_colour_on_a_page() -> None:
    first, second = ordinary(), ordinary("other")
    table = pd.DataFrame({"x": ["a", "a"], "y": [1.0, 2.0], "who": ["new", "ql"]})
    third = Result("third", "?", {"t": table}, (Figure("bars", "t", "B", "x", "y", "who"),))
    colors = assign_page_colors([first, second, third])
    assert list(colors) == [*SYSTEMS, "new"]
    assert len(set(colors.values())) == 4
    bars = marks(ElementTree.fromstring(draw_svg(third.figures[0], table, colors)), "rect")
    assert [bar.get("fill") for bar in bars] == [colors["new"], colors["ql"]]


def test_names_that_meet_differ_in_colour_when_there_are_more_names_than_colours() -> None:
    def result(names: list[str]) -> Result:
        table = pd.DataFrame({"x": ["a"] * len(names), "y": 1.0, "who": names})
        return Result("t", "?", {"t": table}, (Figure("bars", "t", "B", "x", "y", "who"),))

    groups = [[f"{group}{i}" for i in range(10)] for group in "abc"]
    colors = assign_page_colors(map(result, groups))
    assert all(len({colors[name] for name in group}) == 10 for group in groups)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=12))
def test_spread_keeps_order_and_distance(values: list[float]) -> None:
    places = spread_values(values, 5.0, (0.0, 100.0))
    assert all(b - a >= 5 - 1e-9 for a, b in itertools.pairwise(sorted(places)))
    assert max(places) <= 100
    for (a, left), (b, right) in itertools.combinations(zip(values, places, strict=True), 2):
        assert a == b or (a < b) == (left < right)


def test_names_beside_points_do_not_overlap() -> None:
    places = position_labels([(100, 100), (108, 100), (550, 50)], ["first", "second", "third"])
    assert [align for _, _, align in places] == ["right", "left", "right"]


@given(st.floats(0, 1), st.sampled_from([SEQUENTIAL_RAMP, DIVERGING_RAMP]))
def test_ink_is_read_on_every_shade(share: float, ramp: tuple[str, ...]) -> None:
    shade = interpolate_color(ramp, share)
    assert contrast_ratio(choose_ink(shade), shade) >= 4.5


def test_the_palette_is_read_on_light_and_dark_pages() -> None:
    assert len(set(PALETTE)) == len(PALETTE)
    assert set(DARK_MODE_COLORS) < set(PALETTE)
    assert all(contrast_ratio(color, "#ffffff") >= 2.6 for color in PALETTE)
    assert all(contrast_ratio(DARK_MODE_COLORS.get(color, color), "#15181b") >= 3.4 for color in PALETTE)


def test_diverging_bars_lie_on_both_sides_of_zero(tmp_path) -> None:
    rows = [("bm25", "positive", 0.5), ("bm25", "neutral", 0.2), ("bm25", "negative", 0.3), ("ql", "positive", 1.0)]
    table = pd.DataFrame(rows, columns=["ranker", "preference", "share"])
    svg = draw_svg(Figure("diverging", "t", "Preferences", x="ranker", y="share", color="preference"), table)
    for name in ("bm25", "ql", "positive", "neutral", "negative"):
        assert f">{name}<" in svg
    assert svg.count(f'fill="{LOSS_COLOR}"') >= 1
    assert svg.count(f'fill="{GAIN_COLOR}"') >= 2


def ranks(count: int, who: str = "bm25") -> pd.DataFrame:
    """Targets at ranks 11 to 100: the first third rises to half its rank, the second stays, the last sinks by one."""
    before = 11 + np.arange(count) * 89 // max(1, count - 1)
    third = np.arange(count) * 3 // count
    after = np.select([third == 0, third == 1], [before // 2, before], before + 1)
    return pd.DataFrame({"who": who, "before": before, "after": after})


def ways(root: ElementTree.Element) -> dict[str, list[tuple[float, float]]]:
    """Of the lines of each colour, how high they start and end."""
    found: dict[str, list[tuple[float, float]]] = {}
    for path in marks(root, "line"):
        left, top, right, end = map(float, re.findall(r"-?[\d.]+", path.get("d", "")))
        assert left < right
        found.setdefault(path.get("stroke", ""), []).append((top, end))
    return found


def test_slope_has_a_line_for_each_row_and_the_best_rank_on_top() -> None:
    table = pd.DataFrame({"before": [20, 30, 40, 100], "after": [1, 30, 60, 50]})
    root = svg("slope", table, "before", "after")
    lines = ways(root)
    assert sorted(map(len, lines.values())) == [1, 1, 2]
    assert all(end < start for start, end in lines[GAIN_COLOR])  # up on the page
    assert all(end > start for start, end in lines[LOSS_COLOR])
    assert all(end == start for start, end in lines[NEUTRAL_COLOR])
    assert (20, 1) in [(round(1 + 99 * start / 360), round(1 + 99 * end / 360)) for start, end in lines[GAIN_COLOR]]
    assert {"before", "after", "1", "10", "100", "2 up, 1 down, 1 equal"} <= set(texts(root))
    assert len(marks(root, "symbol")) == 8
    assert sorted(hints(root))[0] == "before: 100; after: 50"


def test_slope_has_a_panel_for_each_series() -> None:
    root = svg("slope", pd.concat([ranks(9, "a"), ranks(6, "b")]), "before", "after", "who")
    assert {"a", "3 up, 3 down, 3 equal", "b", "2 up, 2 down, 2 equal"} <= set(texts(root))
    assert len(marks(root, "line")) == 15
    assert texts(root).count("before") == texts(root).count("after") == 2


def test_slope_of_many_targets_stays_light_and_can_be_seen_through() -> None:
    root = svg("slope", ranks(360), "before", "after")
    assert len(marks(root, "line")) == len(hints(root)) == 360
    assert not marks(root, "symbol")
    assert "120 up, 120 down, 120 equal" in texts(root)
    assert all(float(line.get("opacity", "1")) < 0.75 for line in marks(root, "line"))
    assert len(ElementTree.tostring(root)) < 120_000


def test_slope_of_too_many_targets_draws_some_and_reports_it() -> None:
    root = svg("slope", ranks(9000), "before", "after")
    assert len(marks(root, "line")) == MAX_SLOPE_LINES
    assert f"3000 up, 3000 down, 3000 equal ({MAX_SLOPE_LINES} drawn)" in texts(root)
    counts = [len(lines) for lines in ways(root).values()]
    assert max(counts) - min(counts) <= 2  # each third is drawn as much as the others


@pytest.mark.parametrize("value", [-5.0, 0.0, 1.0, 2.5, 1e300])
def test_slope_of_numbers_that_are_no_places(value: float) -> None:
    assert len(marks(svg("slope", pd.DataFrame({"b": [value], "a": [value]}), "b", "a"), "line")) == 1


@given(st.floats(1, 1e6))
def test_rank_ticks_reach_the_last_rank_and_are_few(last: float) -> None:
    ticks = choose_rank_ticks(last)
    assert ticks[0] == 1
    assert ticks[-1] >= last
    assert 2 <= len(ticks) <= 11
    assert ticks == sorted(set(ticks))


def test_charts_of_attack_results() -> None:
    """Success by range with whiskers for each ranker, and success against cost as a curve for each."""
    table = pd.DataFrame(
        [
            (who, span, 50.0, 40.0, 60.0, trials)
            for who in ("a", "b")
            for span, trials in (("11-20", 10), ("21-30", 20))
        ],
        columns=["ranker", "ranks", "success %", "low", "high", "trials"],
    )
    bars = svg("bars", table, "ranks", "success %", "ranker")
    assert len(marks(bars, "rect")) == 4
    assert len(marks(bars, "rule")) == 5  # zero, and an interval each
    curves = svg("lines", table, "trials", "success %", "ranker")
    assert len(marks(curves, "line")) == 2
