//! A small chart and a small page, letter for letter: a change of look shows up in review.

use flashweir_report::{Chart, Hue, Page, Section, Series, Span, Strip, Table};

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
fn a_small_page_escapes_what_it_is_given() {
    let spans = vec![
        Span { from: 0.0, to: 1.5, state: "calm".to_owned(), hue: Hue::Green },
        Span { from: 1.5, to: 4.0, state: "<popular>".to_owned(), hue: Hue::Vermillion },
    ];
    let strip = Strip::new("Verdict", "seconds", (0.0, 4.0)).row("cause", spans);
    let section = Section::new("What happened")
        .text("a < b & c")
        .table(Table::new("Numbers", ["", "unprotected"]).row("\"offered\"", ["1,000"]))
        .figure(strip.figure().expect("draws"));
    let html =
        Page::new("A <script>", "Lead & more.").section(section).footer("end").html().expect("renders");
    assert!(!html.contains("<script") && !html.contains("<popular>"), "unescaped input: {html}");
    // No address is fetched: the only one in the page is the name of SVG's namespace.
    assert_eq!(html.matches("http").count(), html.matches("http://www.w3.org/2000/svg").count());
    insta::assert_snapshot!(html);
}
