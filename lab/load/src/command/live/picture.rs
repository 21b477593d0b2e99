//! Content of the view: progress, rates and latencies of the last two minutes, and the figures.

use super::history::History;
use crate::command::metric::{Quantity, written};
use crate::report::number;
use crate::{Counts, Progress};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{
    Axis, Block, Chart, Dataset, GraphType, LegendPosition, LineGauge, Paragraph, Row, Table,
};

/// A moment to draw.
pub(super) struct Shown<'a> {
    pub(super) title: &'a str,
    pub(super) progress: &'a Progress,
    pub(super) history: &'a History,
    /// The run was asked to end and waits for the last answers.
    pub(super) is_stopping: bool,
}

/// Rows of the table of figures with its header and frame.
const FIGURES_ROWS: u16 = 10;
/// Below this width the ledger does without shares.
const SHARES_FROM: u16 = 70;
/// Below this height there is room for one chart only.
const TWO_CHARTS_FROM: u16 = 28;
/// Frame, axis with its labels, and two rows of lines.
const CHART_LEAST: u16 = 6;

pub(super) fn draw(frame: &mut Frame<'_>, shown: &Shown<'_>) {
    let rows = [Constraint::Length(2), Constraint::Min(CHART_LEAST), Constraint::Length(FIGURES_ROWS)];
    let [top, middle, bottom] = Layout::vertical(rows).areas(frame.area());
    frame.render_widget(gauge(shown), top);
    if frame.area().height >= TWO_CHARTS_FROM {
        let [rates_area, latency_area] =
            Layout::vertical([Constraint::Fill(3), Constraint::Fill(2)]).areas(middle);
        frame.render_widget(rates(shown.history), rates_area);
        frame.render_widget(latencies(shown.history), latency_area);
    } else {
        frame.render_widget(rates(shown.history), middle);
    }
    figures(frame, shown, bottom);
}

fn gauge<'a>(shown: &Shown<'a>) -> LineGauge<'a> {
    let (elapsed, length) = (shown.progress.elapsed.as_secs_f64(), shown.progress.length.as_secs_f64());
    let what = if shown.is_stopping {
        "ending, Ctrl-C ends at once"
    } else if elapsed == 0.0 {
        "waiting for the start"
    } else if elapsed > length {
        "waiting for the last answers"
    } else {
        "q ends with a report"
    };
    LineGauge::default()
        .block(Block::new().title(Line::from(shown.title).bold()))
        .filled_style(Style::new().fg(Color::Cyan))
        .unfilled_style(Style::new().fg(Color::DarkGray))
        .label(format!("{elapsed:>4.0} of {length:.0} s  {what}"))
        // The last people are waited for beyond the schedule's end; a schedule has a length above zero.
        .ratio(if length > 0.0 { (elapsed / length).clamp(0.0, 1.0) } else { 1.0 })
}

fn rates(history: &History) -> Chart<'_> {
    let lines = [
        line("offered", Color::Gray, &history.offered),
        line("refused", Color::Yellow, &history.refused),
        line("goodput", Color::Green, &history.goodput),
    ];
    let top = History::top(&[&history.offered, &history.goodput, &history.refused], 10.0);
    chart(" tries/s ", lines.to_vec(), history.window(), top)
}

fn latencies(history: &History) -> Chart<'_> {
    let lines = [line("p99", Color::Magenta, &history.p99_ms), line("p50", Color::Cyan, &history.p50_ms)];
    let top = History::top(&[&history.p50_ms, &history.p99_ms], 1.0);
    chart(" latency of completed, ms ", lines.to_vec(), history.window(), top)
}

fn line<'a>(name: &'a str, colour: Color, data: &'a [(f64, f64)]) -> Dataset<'a> {
    Dataset::default()
        .name(name)
        .marker(Marker::Braille)
        .graph_type(GraphType::Line)
        .style(Style::new().fg(colour))
        .data(data)
}

fn chart<'a>(title: &'a str, lines: Vec<Dataset<'a>>, window: (f64, f64), top: f64) -> Chart<'a> {
    let (from, to) = window;
    let label = |low: f64, high: f64, unit: &str| {
        [0.0, 0.5, 1.0].map(|share| Span::raw(format!("{}{unit}", number(low + (high - low) * share, 0))))
    };
    Chart::new(lines)
        // The newest is at the right and the eye goes there: the legend must not.
        .legend_position(Some(LegendPosition::TopLeft))
        .hidden_legend_constraints((Constraint::Ratio(1, 2), Constraint::Ratio(1, 2)))
        .block(Block::bordered().title(title).border_style(Style::new().fg(Color::DarkGray)))
        .x_axis(Axis::default().bounds([from, to]).labels(label(from, to, " s")))
        .y_axis(Axis::default().bounds([0.0, top]).labels(label(0.0, top, "")))
}

/// The ledger at the left, times at the right; on a narrow terminal without the shares, so that both fit.
fn figures(frame: &mut Frame<'_>, shown: &Shown<'_>, area: Rect) {
    let with_shares = area.width >= SHARES_FROM;
    let columns: u16 = if with_shares { 44 } else { 36 };
    let areas = Layout::horizontal([Constraint::Length(columns), Constraint::Min(0)]).spacing(2);
    let [left, right] = areas.areas(area);
    frame.render_widget(ledger(shown.progress, with_shares), left);
    frame.render_widget(times(shown.progress), right);
}

fn ledger(progress: &Progress, with_shares: bool) -> Table<'static> {
    let (last, totals) = (&progress.last_second, &progress.totals);
    let columns = if with_shares { 4 } else { 3 };
    let row = |name: &'static str, colour: Color, count: fn(&Counts) -> u64| {
        let cell = |counts: &Counts| Line::from(number(count(counts) as f64, 0)).right_aligned();
        let share = 100.0 * count(totals) as f64 / totals.offered.max(1) as f64;
        let share = Line::from(format!("{share:.1} %")).right_aligned();
        let cells = [Line::from(name), cell(last), cell(totals), share];
        Row::new(cells.into_iter().take(columns)).style(Style::new().fg(colour))
    };
    let rows = [
        row("offered", Color::Reset, |counts| counts.offered),
        row("  unique", Color::Reset, |counts| counts.unique_offered),
        row("goodput", Color::Green, |counts| counts.goodput),
        row("completed late", Color::Reset, |counts| counts.completed - counts.goodput),
        row("refused", Color::Yellow, |counts| counts.refused),
        row("timed out", Color::Red, |counts| counts.timed_out),
        row("abandoned", Color::Red, |counts| counts.abandoned),
        row("errors", Color::Red, Counts::errors),
    ];
    let right = |text: &'static str| Line::from(text).right_aligned();
    let header = [Line::from(""), right("last second"), right("total"), right("share")];
    let widths = [14, 11, 9, 7].map(Constraint::Length);
    Table::new(rows, widths.into_iter().take(columns))
        .header(Row::new(header.into_iter().take(columns)).style(Style::new().add_modifier(Modifier::DIM)))
}

fn times(progress: &Progress) -> Paragraph<'static> {
    let strong = Style::new().add_modifier(Modifier::BOLD);
    let time = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), |ms| written(ms, Quantity::Time));
    let figure = |name: &'static str, value: String| {
        Line::from(vec![Span::raw(format!("{name:<12}")), Span::styled(format!("{value:>10}"), strong)])
    };
    let totals = &progress.totals;
    let ratio = (totals.unique_offered > 0)
        .then(|| format!("{:.1} %", 100.0 * totals.goodput as f64 / totals.unique_offered as f64));
    Paragraph::new(vec![
        Line::from("last second").style(Style::new().add_modifier(Modifier::DIM)),
        figure("p50", time(progress.last_second_p50_ms)),
        figure("p99", time(progress.last_second_p99_ms)),
        Line::from("so far").style(Style::new().add_modifier(Modifier::DIM)),
        figure("in flight", number(totals.in_flight() as f64, 0)),
        figure("goodput", ratio.unwrap_or_else(|| "-".to_owned())),
        figure("lag p99", time(Some(progress.lag_p99_us as f64 / 1e3))),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::sample;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn screen(size: (u16, u16), seconds: u64, is_stopping: bool) -> String {
        let mut history = History::default();
        (0..=seconds).for_each(|second| history.gather(&sample::progress(second)));
        let progress = sample::progress(seconds);
        let title = "flashweir load http://127.0.0.1:8080/";
        let shown = Shown { title, progress: &progress, history: &history, is_stopping };
        let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
        terminal.draw(|frame| draw(frame, &shown)).unwrap();
        terminal.backend().to_string()
    }

    fn check(screen: &str, wanted: &[&str]) {
        for wanted in wanted {
            assert!(screen.contains(wanted), "{screen} lacks {wanted}");
        }
    }

    #[test]
    fn the_view_tells_what_happens() {
        let screen = screen((100, 32), 20, false);
        check(
            &screen,
            &[
                "flashweir load http://127.0.0.1:8080/",
                "20 of 40 s  q ends with a report",
                " tries/s ",
                " latency of completed, ms ",
                "last second",
                "321.4 ms",
                "412 us",
                "in flight",
            ],
        );
        let offered = screen.lines().find(|line| line.contains("offered     ")).unwrap();
        check(offered, &["400", "4,200", "100.0 %"]);
    }

    #[test]
    fn the_line_above_says_what_is_being_waited_for() {
        check(&screen((80, 24), 0, false), &["waiting for the start"]);
        check(&screen((80, 24), 41, false), &["waiting for the last answers"]);
        check(&screen((80, 24), 9, true), &["ending, Ctrl-C ends at once"]);
    }

    #[test]
    fn a_narrow_terminal_keeps_the_times() {
        let screen = screen((60, 18), 20, false);
        check(&screen, &["goodput", "321.4 ms", "412 us"]);
        assert!(!screen.contains("share"), "{screen}");
    }

    /// Terminals are resized at any moment, also to nothing.
    #[test]
    fn no_size_is_too_small() {
        for (width, height) in [(1, 1), (3, 2), (10, 3), (44, 10), (45, 12), (80, 9), (200, 5), (300, 100)] {
            screen((width, height), 30, false);
        }
    }
}
