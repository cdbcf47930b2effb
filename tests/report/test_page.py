"""The report as a reader sees it: opened in a real browser, its controls moved."""

import json
import os
import shutil
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import argmaxf
from argmaxf.cli.app import run
from argmaxf.cli.compare import compare_tables
from argmaxf.cli.tables import read_table, split_table
from argmaxf.comparison import METHODS
from argmaxf.measures import GMean
from argmaxf.report.page import live_numbers, render
from tests.judges import operating_point

SCRIPT = "<script>alert(1)</script>"
IMAGE = "<img src=x onerror=alert(2)>"
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table whose target, columns and file name would be code if they were not text."""
    rng = np.random.default_rng(0)
    n = 300
    x = rng.normal(size=(n, 3))
    frame = pl.DataFrame(x, schema=["a", "b", SCRIPT + " b"]).with_columns(
        pl.date(2026, 1, 1).alias(IMAGE),
        pl.Series(SCRIPT, (x[:, 0] + rng.normal(size=n) > 1.6).astype(int)),
        pl.Series("<b>second</b>", (x[:, 1] + rng.normal(size=n) > 1.0).astype(int)),
    )
    path = tmp_path_factory.mktemp("report") / "<i>train.parquet"
    frame.write_parquet(path)
    return path


def written(table, name, *options):
    """The page that the command writes; it shows the words of the command."""
    path = table.with_name(name)
    words = ["compare", str(table), *options, "--report", str(path), "--json"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["argmaxf", *words])
        assert run(words) == 0
    return path


@pytest.fixture(scope="module")
def one_label(table):
    return written(table, "one.html", "--target", SCRIPT)


@pytest.fixture(scope="module")
def two_labels(table):
    targets = ["--target", SCRIPT, "--target", "<b>second</b>", "--beta", "2"]
    return written(table, "two.html", *targets)


@pytest.fixture(scope="module")
def compared(table):
    return compare_tables(split_table(read_table(table), [SCRIPT], table.name))


def page_for(found, chosen, path):
    """The page of a comparison that had chosen this method."""
    path.write_text(render(replace(found, chosen=chosen), command=["argmaxf"]), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def expected_page(compared, tmp_path_factory):
    return page_for(compared, "expected F", tmp_path_factory.mktemp("page") / "expected.html")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        message = "needs Chromium: apt install chromium chromium-driver"
        if os.environ.get("ARGMAXF_REQUIRE_BROWSER"):
            pytest.fail(message)
        pytest.skip(message)
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in [*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with webdriver.Chrome(options=options, service=Service(driver)) as chrome:
        yield Reader(chrome)


class Reader:
    """Someone in front of the page."""

    def __init__(self, chrome):
        self.chrome = chrome

    def open(self, path, *, width=1280, scheme="light"):
        view = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        self.chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", view)
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self.chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        self.requests(), self.messages()  # what earlier pages left
        self.chrome.get(path.as_uri())

    def text(self, name):
        return self.chrome.find_element("id", name).text

    def number(self, name):
        return float(self.text(name).replace(",", ""))

    def press(self, name, *keys):
        self.chrome.find_element("id", name).send_keys(*keys)

    def script(self, code):
        return self.chrome.execute_script(code)

    def messages(self):
        return self.chrome.get_log("browser")

    def requests(self):
        """The addresses asked for since the last call."""
        log = [
            json.loads(entry["message"])["message"] for entry in self.chrome.get_log("performance")
        ]
        return [
            event["params"]["request"]["url"]
            for event in log
            if event["method"] == "Network.requestWillBeSent"
        ]


def shown(value, digits=4):
    """What a number may look like that is shown with so many digits."""
    return pytest.approx(value, abs=0.5 * 10**-digits + 2e-7)


def check_decision(browser, proba, truth, beta):
    """Compare every number on the page with the library's for this β."""
    decision = argmaxf.maximize_expected_f(proba, beta=beta)
    precision, recall = operating_point(proba, decision.selected)
    tp = int(np.sum(truth & decision.selected))
    assert float(browser.text("threshold-value")) == pytest.approx(decision.threshold, rel=5e-4)
    assert f"{decision.k:,} of {len(proba):,} rows" in browser.text("live-sentence")
    assert browser.number("expected-f") == shown(decision.expected)
    assert float(browser.text("expected-std").lstrip("± ")) == shown(decision.std)
    assert browser.number("expected-precision") == shown(precision)
    assert browser.number("expected-recall") == shown(recall)
    mass = proba[decision.selected].sum()
    assert browser.number("expected-tp") == shown(mass, 1)
    assert browser.number("expected-fp") == shown(decision.k - mass, 1)
    assert browser.number("expected-fn") == shown(proba.sum() - mass, 1)
    check_found(browser, truth, decision.selected, beta)
    assert browser.number("found-tp") == tp


def check_found(browser, truth, selected, beta):
    tp, k, s = int(np.sum(truth & selected)), int(selected.sum()), int(truth.sum())
    counts = [browser.number(f"found-{cell}") for cell in ("tp", "fp", "fn", "tn")]
    assert counts == [tp, k - tp, s - tp, len(truth) - k - s + tp]
    assert browser.number("found-f") == shown(argmaxf.measures.FBeta(beta).value(tp, k, s))
    assert browser.number("found-precision") == shown(tp / k if k else 0.0)
    assert browser.number("found-recall") == shown(tp / s)


def test_moving_beta_shows_what_the_library_says(browser, expected_page, compared):
    from selenium.webdriver.common.keys import Keys

    browser.open(expected_page)
    proba, truth = compared.evidence.scores["expected F"][:, 0], compared.evidence.truth[:, 0]
    assert browser.text("beta-value") == "1"
    check_decision(browser, proba, truth, 1.0)
    for keys in [[Keys.ARROW_RIGHT] * 5, [Keys.END], [Keys.HOME], [Keys.ARROW_RIGHT] * 9]:
        browser.press("beta", *keys)
        check_decision(browser, proba, truth, float(browser.text("beta-value")))


def test_moving_the_threshold_shows_what_it_would_give(browser, expected_page, compared):
    from selenium.webdriver.common.keys import Keys

    browser.open(expected_page)
    proba, truth = compared.evidence.scores["expected F"][:, 0], compared.evidence.truth[:, 0]
    browser.press("beta", *[Keys.ARROW_LEFT] * 3)
    beta = float(browser.text("beta-value"))
    for keys in [[Keys.ARROW_LEFT] * 7, [Keys.HOME], [Keys.END], [Keys.ARROW_LEFT] * 4]:
        browser.press("threshold", *keys)
        selected = proba >= float(browser.text("threshold-value"))
        mean = argmaxf.expected_f(proba, selected, beta=beta).mean
        assert browser.number("expected-f") == shown(mean)
        assert browser.number("expected-recall") == shown(operating_point(proba, selected)[1])
        check_found(browser, truth, selected, beta)
    browser.press("best", Keys.ENTER)
    check_decision(browser, proba, truth, beta)


@pytest.mark.parametrize("key", ["soft", "blend", "threshold", "plain"])
def test_the_sliders_move_the_method_that_is_recommended(browser, compared, tmp_path, key):
    """A method that decides by thresholds expects nothing: its page shows what is found alone."""
    chosen = METHODS[key].name
    browser.open(page_for(compared, chosen, tmp_path / "page.html"))
    rows = compared.evidence
    truth = rows.truth[:, 0]
    hidden = browser.script("return document.getElementById('expected').hidden")
    assert hidden == (key != "blend")
    body = browser.script("return document.getElementById('live').innerText")
    if key == "blend":
        check_decision(browser, rows.scores[chosen][:, 0], truth, 1.0)
        assert f"the probabilities of {chosen}" in body
    else:
        scores = rows.scores[chosen][:, 0] if key == "soft" else rows.proba[:, 0]
        best = argmaxf.maximize_empirical_f(truth, scores)
        check_found(browser, truth, scores >= best.threshold, 1.0)
        assert "the threshold with the highest F on these rows" in body


def test_each_label_has_its_own_numbers(browser, table, tmp_path):
    targets = [SCRIPT, "<b>second</b>"]
    rows = split_table(read_table(table), targets, table.name)
    found = compare_tables(rows, beta=2.0)
    browser.open(page_for(found, "expected F", tmp_path / "page.html"))
    assert browser.script("return document.getElementById('label').options[1].text") == targets[1]
    for i in (0, 1, 0):
        browser.script(
            f"const s = document.getElementById('label'); s.value = {i};"
            "s.dispatchEvent(new Event('change'))"
        )
        assert browser.text("beta-value") == "2"
        proba = found.evidence.scores["expected F"][:, i]
        check_decision(browser, proba, found.evidence.truth[:, i], 2.0)


@pytest.mark.parametrize("page", ["one_label", "two_labels"])
def test_nothing_leaves_the_page_and_nothing_fails(browser, page, request):
    path = request.getfixturevalue(page)
    browser.open(path)
    chance = [url for url in browser.requests() if not url.startswith("data:")]
    assert chance == [path.as_uri()]
    assert browser.messages() == []


def test_names_stay_text(browser, one_label):
    browser.open(one_label)
    question = f"Which method predicts {SCRIPT} with the highest F1?"
    assert browser.script("return document.querySelector('h1').textContent") == question
    assert browser.script("return document.title") == question
    body = browser.script("return document.body.innerText")
    assert IMAGE in body  # a date, left out and named
    assert "<i>train.parquet" in body
    assert browser.script("return document.querySelectorAll('script').length") == 2
    assert browser.script("return document.querySelectorAll('img, i, b').length") == 0


@pytest.mark.parametrize("width", [360, 480, 640, 720, 800, 1000, 1280, 1600])
def test_no_column_is_cut_off_at_any_width(browser, one_label, two_labels, width):
    for page in (one_label, two_labels):
        browser.open(page, width=width)
        assert browser.script("return document.documentElement.scrollWidth <= innerWidth")
        wide = browser.script(
            "return [...document.querySelectorAll('.scroll, table')].filter(e => e.offsetParent &&"
            " e.scrollWidth > e.clientWidth + 1).map(e => e.className)"
        )
        assert wide == []


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_readable_on_phone_and_desk_in_light_and_dark(browser, two_labels, width, scheme):
    browser.open(two_labels, width=width, scheme=scheme)
    assert browser.script("return document.documentElement.scrollWidth <= innerWidth")
    wide = browser.script(
        "return [...document.querySelectorAll('.methods, svg, pre')].filter(e => innerWidth <"
        " Math.max(e.getBoundingClientRect().right, e.scrollWidth)).map(e => e.outerHTML)"
    )
    assert wide == []
    background = browser.script("return getComputedStyle(document.body).backgroundColor")
    assert (luminance(background) < 0.1) == (scheme == "dark")
    colours = browser.script(
        "return [...document.querySelectorAll('p, li, th, td, dt, dd, label, small, pre, button,"
        " figcaption, svg text, .tag')].filter(e => !e.disabled).map(e => [e.tagName,"
        " e.closest('svg') ? getComputedStyle(e).fill : getComputedStyle(e).color,"
        " getComputedStyle(e.closest('.cards > div, pre, tr.chosen, button') || document.body)"
        ".backgroundColor, e.textContent])"
    )
    faint = [row for row in colours if contrast(row[1], row[2]) < 4.5]
    assert faint == []


def test_nothing_is_cut_off_on_paper(browser, one_label):
    browser.open(one_label, width=718)  # A4 less its margins, at 96 dots an inch
    browser.chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    wide = browser.script(
        "return [...document.querySelectorAll('table, svg, pre, p')]"
        ".filter(e => e.getBoundingClientRect().right > innerWidth).map(e => e.outerHTML)"
    )
    browser.chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert wide == []


def test_controls_are_labelled_and_reached_by_keyboard(browser, two_labels):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    browser.open(two_labels)
    assert browser.script(
        "return [...document.querySelectorAll('input, select')].every(e => e.labels.length == 1)"
    )
    assert browser.script(
        "return [...document.querySelectorAll('figure svg')].every(e => e.ariaLabel)"
    )
    reached = []
    for _ in range(8):
        browser.chrome.switch_to.active_element.send_keys(Keys.TAB)
        reached.append(browser.chrome.switch_to.active_element.get_attribute("id"))
    assert [name for name in reached if name] == ["label", "beta", "threshold"]
    assert browser.chrome.find_element(By.ID, "beta").get_attribute("aria-valuetext") == "beta 2"


def test_the_page_is_one_small_file(one_label, two_labels):
    for path in (one_label, two_labels):
        assert path.stat().st_size < 3_000_000
        text = path.read_text(encoding="utf-8")
        assert "http://" not in text.replace("http://www.w3.org", "")
        assert "https://" not in text


@pytest.mark.parametrize("n", [400, pytest.param(6_000, marks=pytest.mark.slow)])
def test_many_rows_and_labels_still_fit_in_the_page(n):
    rng, labels = np.random.default_rng(0), 8
    x = rng.normal(size=(n, 2))
    names = [f"label {i}" for i in range(labels)]
    y = rng.random((n, labels)) < 1 / (1 + np.exp(np.arange(1, labels + 1) / 2 - x[:, :1]))
    frame = pl.DataFrame(x, schema=["a", "b"]).hstack(pl.DataFrame(y * 1, schema=names))
    found = compare_tables(split_table(frame, names, "t"), folds=2)
    page = render(found, command=["argmaxf"])
    assert len(page.encode()) < 3_000_000
    assert "Shown are the 6 rarest labels; 2 more took part" in page
    assert 'value="0">label 2<' in page


def test_a_page_of_another_measure_speaks_of_it(compared):
    page = render(replace(compared, measure=GMean()), command=["argmaxf"])
    assert "± 1 std of G-mean" in page
    assert "β" not in page.replace("F<sub>β</sub>", "")
    assert "std of F" not in page


@pytest.mark.parametrize("key", ["expected", "threshold", "soft"])
def test_pictures_show_the_recommended_method_and_the_numbers_of_the_headline(compared, key):
    name = METHODS[key].name
    found = replace(compared, chosen=name)
    page = render(found, command=["argmaxf"])
    k, f = found.evidence.predictions[name].sum(), found.method.score.value
    pictures = page[page.index("pictures-title") :]
    assert f"{name}: {k:,} selected, F1 {f:.3f}" in pictures
    assert f"selects {k:,} of" in found.verdict
    others = {method.name for method in METHODS.values()} - {name}
    assert not [other for other in others if f"{other}: " in pictures]


def test_the_page_says_how_to_repeat_it(browser, one_label, compared):
    browser.open(one_label)
    body = browser.script("return document.body.innerText")
    assert f"argmaxf {argmaxf.__version__}" in body
    assert "sklearn LogisticRegression(max_iter=1000); 5 folds, seed 0" in body
    assert compared.verdict in body
    assert f"{compared.method.score.value:.3f}" in body
    assert ".fit(X, y)" in body


def test_live_numbers_where_everything_is_certain():
    truth = np.array([False, True, True])
    numbers = live_numbers(np.array([0.0, 1.0, 1.0]), truth, 1.0, joint=True)
    assert numbers["decisions"][0]["k"] == 2
    cut = numbers["cuts"][-1]
    assert (cut["threshold"], cut["k"], cut["precision"], cut["tp"]) == (1.0, 2, 1.0, 2)
    assert cut["recall"] == pytest.approx(1.0)
    json.dumps(numbers, allow_nan=False)


@pytest.mark.parametrize("joint", [True, False])
def test_grids_hold_what_is_asked_for(joint):
    rng = np.random.default_rng(0)
    p = rng.beta(0.2, 5, 1000)
    numbers = live_numbers(p, rng.random(1000) < p, 0.731, joint=joint)
    assert {0.1, 0.731, 1.0, 10.0} <= set(numbers["betas"])
    cuts = numbers["cuts"]
    grid = [cut["threshold"] for cut in cuts]
    assert grid == sorted(set(grid))
    assert all(cut["k"] == np.sum(p >= cut["threshold"]) for cut in cuts)
    assert 0 <= grid[0] < grid[-1] <= 1
    assert len({cut["k"] for cut in cuts if cut["k"] <= 20}) > 10  # dense at the top


def luminance(colour):
    parts = [float(v) for v in colour[colour.index("(") + 1 : -1].split(",")][:3]
    linear = [v / 255 / 12.92 if v <= 10 else ((v / 255 + 0.055) / 1.055) ** 2.4 for v in parts]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def contrast(a, b):
    """The contrast of two colours as WCAG defines it."""
    low, high = sorted([luminance(a), luminance(b)])
    return (high + 0.05) / (low + 0.05)
