//! A small chart and a small page, letter for letter: a change of look shows up in review.

use crate::report::{Chart, HeatMap, Hue, KeyFigure, Page, Section, Series, Span, Strip, Table, Tone};

fn chart() -> Chart {
    Chart::new("Rates", "seconds", "requests/s")
        .band("crowd", 1.0, 3.0)
        .series(Series::area(
            "offered",
            Hue::Grey,
            vec![(0.0, Some(10.0)), (2.0, Some(90.0)), (4.0, Some(20.0))],
        ))
        .series(Series::line("goodput", Hue::Green, vec![(0.0, Some(10.0)), (2.0, None), (4.0, Some(20.0))]))
        .reference("capacity 40/s", Hue::Vermillion, 40.0)
        .marker("alarm", 1.5)
}

#[test]
fn a_small_chart() {
    insta::assert_snapshot!(chart().figure().expect("draws").svg());
}

#[test]
fn a_small_logarithmic_chart() {
    let points = vec![(0.0, Some(8.0)), (1.0, Some(0.0)), (2.0, Some(1900.0)), (3.0, Some(15.0))];
    let chart =
        Chart::new("Latency", "seconds", "ms").log_scale().series(Series::line("p99", Hue::Blue, points));
    insta::assert_snapshot!(chart.figure().expect("draws").svg());
}

#[test]
fn a_small_stack() {
    let layer = |name, hue, [first, second]: [f64; 2]| {
        Series::area(name, hue, vec![(0.5, Some(first)), (1.5, Some(second))])
    };
    let chart = Chart::new("Ledger", "seconds", "requests/s")
        .x_range(0.0, 2.0)
        .stacked(layer("goodput", Hue::Green, [40.0, 60.0]))
        .stacked(layer("refused", Hue::Amber, [0.0, 25.0]))
        .series(layer("offered", Hue::Ink, [40.0, 90.0]));
    insta::assert_snapshot!(chart.figure().expect("draws").svg());
}

#[test]
fn a_small_percentile_plot() {
    let counts = [(0.8, 50), (2.0, 40), (7.0, 9), (300.0, 1)];
    let chart = Chart::new("The slowest", "percentile", "ms")
        .log_scale()
        .nines_x()
        .series(Series::percentiles("completed", Hue::Blue, counts));
    insta::assert_snapshot!(chart.figure().expect("draws").svg());
}

#[test]
fn a_small_distribution() {
    let counts = [(0.8, 50), (2.0, 40), (7.0, 9), (300.0, 1)];
    let chart =
        Chart::new("All", "ms", "%").log_x().series(Series::cumulative("completed", Hue::Blue, counts));
    insta::assert_snapshot!(chart.figure().expect("draws").svg());
}

#[test]
fn a_small_heat_map() {
    let map = HeatMap::new("Latency", "seconds", "ms", "requests")
        .column(0.0, 1.0, [(1.0, 1.06, 200), (90.0, 95.0, 1)])
        .column(1.0, 2.0, [(2.0, 2.12, 30)])
        .reference("target", Hue::Blue, 50.0);
    insta::assert_snapshot!(map.figure().expect("draws").svg());
}

#[test]
fn a_small_page_escapes_what_it_is_given() {
    let spans = vec![
        Span { from: 0.0, to: 1.5, state: "calm".to_owned(), hue: Hue::Green },
        Span { from: 1.5, to: 4.0, state: "<popular>".to_owned(), hue: Hue::Vermillion },
    ];
    let strip = Strip::new("Verdict", "seconds", (0.0, 4.0)).row("cause", spans);
    let section = Section::new("What happened")
        .text("a < b & c")
        .warning("not <kept>")
        .key_figures([
            KeyFigure::new("<goodput>", "99 %").note("of <all>").tone(Tone::Good),
            KeyFigure::new("p99", "1 < 2"),
        ])
        .table(Table::new("Numbers", ["", "unprotected"]).row("\"offered\"", ["1,000"]))
        .figure(strip.figure().expect("draws"));
    let html =
        Page::new("A <script>", "Lead & more.").section(section).footer("end").html().expect("renders");
    assert!(
        ["<script", "<popular>", "<kept>", "<goodput>", "<all>"].iter().all(|tag| !html.contains(tag)),
        "{html}"
    );
    // No address is fetched: the only one in the page is the name of SVG's namespace.
    assert_eq!(html.matches("http").count(), html.matches("http://www.w3.org/2000/svg").count());
    insta::assert_snapshot!(html);
}
