"""Reliability diagrams of links: what is counted, and what is drawn of it."""

from xml.etree import ElementTree

import pytest

from benchmarks.reliability import Judged, drawing, interval, judged_links

SVG = "{http://www.w3.org/2000/svg}"


def link(start, entity, score):
    return {"start": start, "end": start + 4, "entity": entity, "score": score}


def test_optional_links_are_left_out_and_two_of_one_name_count_both():
    def counts(gold, links):
        [each] = links
        return (
            {"links": each["start"] != 9, "right": gold["names"].get(each["start"]) == each["entity"]},
            [],
            [],
        )

    gold = [{"id": 1, "names": {0: "a", 5: "b"}}]
    links = [link(0, "a", 0.9), link(0, "c", 0.2), link(5, "a", 0.4), link(9, "a", 0.8)]
    judged = list(judged_links(gold, [{"id": "1", "links": links}], counts))
    assert judged == [Judged(0.9, right=True), Judged(0.2, right=False), Judged(0.4, right=False)]


def test_points_stand_at_the_share_over_the_mean_score():
    half = [Judged(0.52, right=True), Judged(0.58, right=False)]
    sure = [Judged(1.0, right=True)] * 3
    root = ElementTree.fromstring(drawing({"A & B": half + sure, "none": []}))
    [one, none] = root.findall(f"{SVG}g")
    size = float(one.find(f"{SVG}rect").get("width"))
    points = [(float(dot.get("cx")), float(dot.get("cy"))) for dot in one.findall(f"{SVG}circle")]
    assert points == [pytest.approx((0.55 * size, 0.5 * size)), pytest.approx((size, 0))]
    words = [text.text for text in one.findall(f"{SVG}text")]
    assert {"A & B", "2", "3"} <= set(words)
    assert not none.findall(f"{SVG}circle")


def test_an_interval_holds_its_share_and_narrows_with_more():
    for share in (0.0, 0.3, 1.0):
        low, high = interval(share, 10)
        assert 0 <= low <= share + 1e-9 <= high + 2e-9 <= 1 + 3e-9
        closer = interval(share, 1000)
        assert closer[1] - closer[0] < high - low
    assert interval(0.5, 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)
