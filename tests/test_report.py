"""The page about a sweep: what is in the file, and what a browser makes of it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sweeps import config_of, records, write_run

from buropt.history import Record
from buropt.report.__main__ import main
from buropt.report.thin import thin
from buropt.report.write import page_of, write_report
from buropt.results import Run, read_runs
from buropt.series import group, mean_of


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two methods, two k, three seeds; one run diverges, one fails, one was killed."""
    folder = tmp_path_factory.mktemp("page") / "a<b>&c"
    for number in range(12):
        name, k, seed = ("gd", "marina")[number // 6], (1, 10)[number // 3 % 2], number % 3
        rate = 0.5 + 0.02 * seed + 0.02 * k
        history, status = records(rate, n=60 + seed, bits=64 * k), "budget:iterations"
        if number == 4:
            history = [*records(3.0, n=9), records(n=10)[9]._replace(f=np.nan, f_gap=None)]
            status = "non_finite"
        if number == 5:
            history, status = [], "failed"
        config = config_of(seed=seed, k=k, note="</script><script>alert(1)</script>")
        write_run(
            folder / str(number),
            config,
            history,
            status=None if number == 7 else status,
            choices={"optimizer": name},
            message="no such file" if number == 5 else "the budget is used up",
        )
    return folder


@pytest.fixture(scope="module")
def report(sweep: Path) -> Path:
    return write_report(sweep)


# --- without a browser ---


def content_of(page: str) -> dict[str, Any]:
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    content = json.loads(found)
    assert isinstance(content, dict)
    return content


def test_the_page_is_one_file_that_loads_nothing(report: Path) -> None:
    page = report.read_text()
    assert report.name == "report.html"
    assert re.findall(r"https?://[^\s\"']*", page) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"<(link|img|script)[^>]*(src|href)=(?!\"data:)", page)
    assert "/a&lt;b&gt;&amp;c</title>" in page
    assert "<script>alert" not in page
    assert "{{" not in re.sub(r"\$\{[^}]*\}", "", page)


def test_what_it_says(report: Path) -> None:
    content = content_of(report.read_text())
    assert content["keys"] == ["optimizer", "compressor.k", "seed"]
    assert content["seeds"] == ["seed"]
    assert content["commands"] == [["python -m buropt.run -m optimizer=gd,marina seed=0,1,2", 12]]
    assert content["versions"] == {"buropt": "1"}
    assert content["shared"]["problem"] == "logistic"
    assert "optimizer.compressor.k" not in content["shared"]
    runs = content["runs"]
    assert [runs[k]["status"] for k in (0, 4, 5, 7)] == [
        "budget:iterations",
        "non_finite",
        "failed",
        "unfinished",
    ]
    assert runs[4]["diverged"]
    assert runs[4]["final"]["iteration"] == 8  # the last at which everything was finite
    assert runs[4]["measured"] == 10
    assert runs[5]["message"] == "no such file"
    assert runs[0]["final"]["f_gap"] == 0.52**59


def test_the_command_line(sweep: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page.html"
    assert main([str(sweep), "--out", str(out), "--title", "Our sweep"]) == 0
    assert "<h1>Our sweep</h1>" in out.read_text()
    assert capsys.readouterr().out == f"{out}\n"
    assert main([str(tmp_path / "none")]) == 2
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "history.jsonl").write_text("[]\n{}\n")
    assert capsys.readouterr().err.startswith("buropt.report: ")
    assert main([str(tmp_path / "damaged")]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"buropt.report: nothing in {tmp_path / 'damaged'} can be read: ")
    assert "history.jsonl, line 1" in said


@pytest.mark.parametrize("n", [1, 2, 3, 2000])
def test_thinned_curves_look_the_same(n: int) -> None:
    """At every point of a noisy history, in pixels of the axes that a page offers."""
    rng = np.random.default_rng(n)
    k = np.arange(n)
    gap = np.exp(-k / 300 + 0.001 * np.cumsum(rng.standard_normal(n)))
    bits = np.cumsum(np.where(rng.random(n) < 0.02, 5000.0, 300.0))
    history = [
        Record(int(i), gap[i], gap[i], gap[i] ** 2, i, int(i), bits[i], 0.0, 1e-3 * i, None)
        for i in k
    ]
    columns = {
        name: np.array([record[place] for record in history], dtype=np.float64)
        for place, name in enumerate(Record._fields)
    }
    kept = thin(columns, 10_000)
    assert kept[0] == 0
    assert kept[-1] == n - 1
    assert len(kept) <= max(3, n // 4)
    for x, y in ((columns["iteration"], np.log(gap)), (bits, 2 * np.log(gap))):
        at = np.interp(k, kept, y[kept]), np.interp(k, kept, x[kept])
        for seen, full in zip(at, (y, x), strict=True):
            assert np.abs(seen - full).max() <= 0.5 / 800 * max(np.ptp(full), 1e-12) * 1.001
    assert len(thin(columns, 2)) == min(n, 2)


def test_thinning_keeps_what_sticks_out() -> None:
    columns = {name: np.arange(500.0) for name in Record._fields}
    columns["f_gap"] = np.full(500, 1.0)
    columns["f_gap"][123] = 1e-9
    columns["grad_norm_sq"] = np.full(500, np.nan)
    assert {122, 123, 124} <= set(thin(columns, 20).tolist())


# --- in a browser ---


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    with playwright.sync_playwright() as engine:
        opened = engine.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()


class Visit:
    """A page in a browser that notes every complaint and every request."""

    def __init__(self, browser: Any, path: Path, **context: Any) -> None:
        self.page = browser.new_page(viewport={"width": 1300, "height": 900}, **context)
        self.page.set_default_timeout(10_000)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.wait()

    def wait(self) -> None:
        self.page.wait_for_selector("html[data-ready]", timeout=30_000)

    def ask(self, script: str) -> Any:
        return self.page.evaluate(script)

    def texts(self, selector: str) -> list[str]:
        return [str(text).strip() for text in self.page.locator(selector).all_inner_texts()]

    def column(self, name: str) -> list[str]:
        heads = self.page.locator("#table th button")
        names = [heads.nth(k).get_attribute("data-column") for k in range(heads.count())]
        return self.texts(f"#table tbody td:nth-child({names.index(name) + 1})")

    def inked(self, chart: int) -> int:
        """Pixels of a chart that have a colour."""
        return int(
            self.ask(
                f"""() => {{
                const canvas = document.querySelectorAll("figure canvas:nth-of-type(1)")[{chart}];
                const copy = new OffscreenCanvas(canvas.width, canvas.height);
                const pen = copy.getContext("2d", {{ willReadFrequently: true }});
                pen.drawImage(canvas, 0, 0);
                const {{ data }} = pen.getImageData(0, 0, canvas.width, canvas.height);
                let n = 0;
                for (let k = 0; k < data.length; k += 4) {{
                  const [r, g, b, a] = data.slice(k, k + 4);
                  if (a > 100 && Math.max(r, g, b) - Math.min(r, g, b) > 60) n++;
                }}
                return n;
                }}"""
            )
        )


@pytest.fixture
def visit(browser: Any, report: Path) -> Iterator[Visit]:
    visit = Visit(browser, report)
    yield visit
    assert visit.complaints == []
    assert [url for url in visit.requests if not url.startswith(("file:", "data:", "blob:"))] == []
    visit.page.close()


def test_it_is_drawn(visit: Visit) -> None:
    assert visit.texts("h1")[0].endswith("/a<b>&c")
    assert visit.texts("#summary")[0].startswith("12 runs · 4 series · 3 seeds · 1 diverged · 1 fa")
    assert visit.texts("figcaption") == ["f(x) − f*\n⤢", "‖∇f(x)‖²\n⤢", "‖x − x*‖²\n⤢"]
    assert [visit.inked(chart) > 500 for chart in range(3)] == [True] * 3
    legend = visit.texts("#legend button")
    assert [re.split(r"\s*[×✕]", text)[0] for text in legend] == [
        *("gd, k=1", "gd, k=10", "marina, k=1", "marina, k=10")
    ]
    assert legend[1].endswith("✕ 2 diverged, failed")
    assert "geometric mean over seeds" in visit.texts("#note")[0]
    assert "no measurement" in visit.texts("#note")[0]
    assert visit.column("status")[1] == "✕ 2 of 3: budget:iterations, failed, non_finite"


def test_means_are_those_of_figures(visit: Visit, sweep: Path) -> None:
    visit.page.click("#axes [data-x='bits_up']")
    (shown,) = visit.ask(
        """() => buropt.charts[1].lines.filter((line) => line.series.label === "marina, k=10")
        .map(({ x, y, low, high }) => ({ x, y, low, high }))"""
    )
    series = {series.label: series for series in group(read_runs(sweep))}["marina, k=10"]
    curve = mean_of(series.runs, "bits_up", "grad_norm_sq")
    assert curve is not None
    for mine, theirs in ((curve.y, "y"), (curve.low, "low"), (curve.high, "high")):
        at = np.interp(shown["x"], curve.x, np.log(mine))  # type: ignore[arg-type]
        np.testing.assert_allclose(np.log(shown[theirs]), at, rtol=0.01)


def test_hover(visit: Visit) -> None:
    x, y, value, iteration = visit.ask(
        """() => { const chart = buropt.charts[0];
        const line = chart.lines.find((each) => each.series.label === "gd, k=1");
        const box = chart.canvas.getBoundingClientRect();
        const k = Math.floor(line.x.length / 2);
        return [box.left + line.px[k], box.top + line.py[k], line.y[k], line.x[k]]; }"""
    )
    visit.page.mouse.move(x, y)
    tip = visit.texts("#tip")[0]
    assert "gd, k=1" in tip
    assert f"iterations\t{iteration:g}" in tip
    assert f"{value:.3e}".rstrip("0")[:4] in tip or f"{value:.4g}" in tip
    assert "mean of\t3 runs" in tip
    assert visit.texts("#legend button.lit")[0].startswith("gd, k=1")
    visit.page.mouse.move(5, 5)
    assert visit.page.locator("#tip").is_hidden()


def test_filter_and_address(visit: Visit) -> None:
    before = visit.inked(0)
    visit.page.click("details[data-key='optimizer'] > summary")
    visit.page.uncheck("details[data-key='optimizer'] input[value='marina']")
    assert len(visit.texts("#legend button")) == 2
    assert len(visit.texts("#table tbody tr")) == 2
    assert visit.inked(0) < before
    assert visit.texts("details[data-key='optimizer'] > summary") == ["optimizer: gd"]
    visit.page.reload()
    visit.wait()
    assert len(visit.texts("#legend button")) == 2
    visit.page.click("#reset")
    assert len(visit.texts("#legend button")) == 4
    assert visit.page.url.endswith("report.html")
    visit.page.click("details[data-key='status'] > summary")
    visit.page.click("details[data-key='status'] button:has-text('none')")
    assert visit.texts("#table tbody tr") == []
    assert visit.inked(0) == 0


def test_hide_and_single_out(visit: Visit) -> None:
    first = visit.page.locator("#legend button").first
    first.click()
    assert first.get_attribute("aria-pressed") == "false"
    first.click()
    first.click(modifiers=["Shift"])
    pressed = visit.page.locator("#legend button[aria-pressed='true']")
    assert pressed.count() == 1


def test_sort(visit: Visit) -> None:
    visit.page.click("#table th button[data-column='f_gap']")
    values = [float(text) for text in visit.column("f_gap")]
    assert values == sorted(values)
    assert visit.page.locator("#table th[aria-sort='ascending']").count() == 1
    visit.page.click("#table th button[data-column='f_gap']")
    assert [float(text) for text in visit.column("f_gap")] == values[::-1]
    visit.page.click("#rows [data-rows='runs']")
    assert len(visit.texts("#table tbody tr")) == 12
    visit.page.click("#table th button[data-column='run']")
    assert visit.column("run") == [str(number) for number in range(12)]
    assert visit.column("status")[4:6] == ["✕ non_finite", "✕ failed"]
    assert visit.column("f_gap")[5] == "–"
    assert visit.texts("#wrong li") == [
        "run 4 diverged: the budget is used up",
        "run 5 failed: no such file",
    ]


def test_axes_zoom_and_theme(visit: Visit) -> None:
    visit.page.check("#choose-logx")
    visit.page.select_option("#choose-mean", "false")
    assert visit.ask("() => buropt.charts[0].lines.length") == 11
    visit.page.select_option("#choose-hue", "compressor.k")
    visit.page.uncheck("#choose-logx")
    box = visit.page.locator("figure canvas").first.bounding_box()
    visit.page.mouse.move(box["x"] + 120, box["y"] + 100)
    visit.page.mouse.down()
    visit.page.mouse.move(box["x"] + 220, box["y"] + 100, steps=4)
    visit.page.mouse.up()
    low, high = visit.ask("() => buropt.state.zoom")
    assert 0 < low < high < 60
    values = visit.ask(
        """() => { const chart = buropt.charts[0];
        const { sy } = chart;
        return [sy.back(chart.bottom), sy.back(8)]; }"""
    )
    assert 0 < values[0] < values[1] < 1  # what is in between fills the chart
    visit.page.mouse.dblclick(box["x"] + 120, box["y"] + 100)
    assert visit.ask("() => buropt.state.zoom") is None
    paper = visit.ask("() => getComputedStyle(document.body).backgroundColor")
    visit.page.click("#theme")
    assert visit.ask("() => getComputedStyle(document.body).backgroundColor") != paper
    assert visit.inked(0) > 500


def test_download(visit: Visit) -> None:
    with visit.page.expect_download() as download:
        visit.page.click("#csv")
    lines = Path(download.value.path()).read_text().splitlines()
    assert lines[0].startswith("optimizer,compressor.k,runs,status,f_gap,grad_norm_sq,distance_sq")
    assert len(lines) == 5


def test_a_single_run_on_a_dark_screen(browser: Any, tmp_path: Path) -> None:
    unknown = [record._replace(f_gap=None, distance_sq=None) for record in records(n=30)]
    folder = write_run(tmp_path / "run", config_of(), unknown)
    visit = Visit(browser, write_report(folder), color_scheme="dark")
    assert visit.texts("figcaption") == ["‖∇f(x)‖²\n⤢", "f(x)\n⤢"]
    assert visit.inked(0) > 100
    assert visit.page.locator("#rows").is_hidden()
    assert visit.complaints == []
    visit.page.close()


def test_a_thousand_runs(browser: Any, tmp_path: Path) -> None:
    """Drawn in less than a second on an idle machine; the limits have room for a busy one."""
    rng = np.random.default_rng(0)
    runs = []
    for number in range(1000):
        k = np.arange(30)
        gap = np.exp(-0.1 * k * rng.random() + 0.3 * rng.standard_normal(30))
        columns = {name: gap.copy() for name in Record._fields}
        columns["iteration"] = columns["oracle_calls"] = k
        columns["bits_up"] = np.cumsum(rng.integers(300, 900, 30)).astype(float)
        settings = {"optimizer": f"m{number % 5}", "step": number // 5 % 20, "seed": number // 100}
        runs.append(Run(str(number), "converged", "", settings, columns, {}))
    path = tmp_path / "page.html"
    path.write_text(page_of(runs, "many"))
    assert path.stat().st_size < 2e6
    visit = Visit(browser, path)
    assert visit.ask("() => Number(document.documentElement.dataset.ready)") < 10_000
    assert len(visit.texts("#table tbody tr")) == 100
    visit.page.click("#rows [data-rows='runs']")
    assert len(visit.texts("#table tbody tr")) == 200
    visit.page.select_option("#choose-mean", "false")
    assert visit.ask("() => buropt.charts[0].lines.length") == 1000
    clock = "performance.now()"
    spent = visit.ask(f"() => {{ const t = {clock}; buropt.render({{}}); return {clock} - t; }}")
    assert spent < 5_000
    assert visit.complaints == []
    visit.page.close()
