//! The live view: progress, rates over time with the capacity line, and Flashweir's verdict.

use super::{Frame, Wish, said};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType, LegendPosition, LineGauge, Paragraph, Wrap};
use std::io;
use std::time::Duration;

/// Points kept of each line: ten minutes at five a second. A visit is over long before.
const POINTS_KEPT: usize = 3_000;

/// The terminal while the demo has it; given back when dropped.
pub(crate) struct TerminalView {
    terminal: DefaultTerminal,
    lines: Lines,
}

/// Lines of the plot, gathered as they come.
#[derive(Default)]
struct Lines {
    /// From the first moment to the last at the origin's capacity.
    capacity: [(f64, f64); 2],
    visit: &'static str,
    offered: Vec<(f64, f64)>,
    goodput: Vec<(f64, f64)>,
    /// The goodput of the visit before, to compare with.
    before: Option<(&'static str, Vec<(f64, f64)>)>,
}

impl TerminalView {
    pub(super) fn open() -> io::Result<Self> {
        Ok(Self { terminal: ratatui::try_init()?, lines: Lines::default() })
    }

    pub(super) fn announce(&mut self, what: &str) -> io::Result<()> {
        let text = Paragraph::new(what).wrap(Wrap { trim: true });
        let boxed = text.block(Block::bordered().title(" Flashweir demo "));
        self.terminal.draw(|frame| frame.render_widget(boxed, frame.area()))?;
        Ok(())
    }

    pub(super) fn show(&mut self, shown: &Frame<'_>) -> io::Result<Wish> {
        self.lines.gather(shown);
        self.terminal.draw(|frame| draw(frame, shown, &self.lines))?;
        pressed()
    }
}

impl Lines {
    fn gather(&mut self, shown: &Frame<'_>) {
        if shown.visit != self.visit {
            let goodput = std::mem::take(&mut self.goodput);
            self.before = (!goodput.is_empty()).then_some((self.visit, goodput));
            self.offered.clear();
            self.visit = shown.visit;
        }
        let length = shown.progress.length.as_secs_f64();
        self.capacity = [(0.0, shown.capacity_rps), (length, shown.capacity_rps)];
        if self.offered.len() < POINTS_KEPT {
            let at = shown.progress.elapsed.as_secs_f64();
            self.offered.push((at, shown.progress.last_second.offered as f64));
            self.goodput.push((at, shown.progress.last_second.goodput as f64));
        }
    }
}

impl Drop for TerminalView {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

fn draw(frame: &mut ratatui::Frame<'_>, shown: &Frame<'_>, lines: &Lines) {
    let rows = [Constraint::Length(2), Constraint::Min(8), Constraint::Length(4)];
    let [top, middle, bottom] = Layout::vertical(rows).areas(frame.area());
    frame.render_widget(progress(shown), top);
    frame.render_widget(rates(shown, lines), middle);
    frame.render_widget(figures(shown, bottom), bottom);
}

fn progress<'a>(shown: &Frame<'_>) -> LineGauge<'a> {
    // The last people are waited for beyond the schedule's end.
    let share = (shown.progress.elapsed.as_secs_f64() / shown.progress.length.as_secs_f64()).clamp(0.0, 1.0);
    let label = format!("{:>4.1} s  {}", shown.progress.elapsed.as_secs_f64(), shown.phase);
    LineGauge::default()
        .block(Block::new().title(Line::from(format!("Flashweir demo: {}", shown.visit)).bold()))
        .filled_style(Style::new().fg(Color::Cyan))
        .unfilled_style(Style::new().fg(Color::DarkGray))
        .label(label)
        .ratio(share)
}

fn rates<'a>(shown: &Frame<'_>, lines: &'a Lines) -> Chart<'a> {
    let line = |name: String, colour, data: &'a [(f64, f64)]| {
        Dataset::default()
            .name(name)
            .marker(Marker::Braille)
            .graph_type(GraphType::Line)
            .style(Style::new().fg(colour))
            .data(data)
    };
    let mut drawn = vec![
        line("capacity".to_owned(), Color::Yellow, &lines.capacity),
        line("offered".to_owned(), Color::Gray, &lines.offered),
    ];
    if let Some((visit, goodput)) = &lines.before {
        drawn.push(line(format!("goodput {visit}"), Color::Red, goodput));
    }
    drawn.push(line(format!("goodput {}", lines.visit), Color::Green, &lines.goodput));

    let seconds = shown.progress.length.as_secs_f64();
    let ticks = |top: f64, unit: &str| {
        [0.0, 0.5, 1.0].map(|share| Span::raw(format!("{:.0}{unit}", top * share))).to_vec()
    };
    let title = format!(" requests/s (capacity {:.0}/s) ", shown.capacity_rps);
    // The quiet stretch before the crowd leaves the upper left free.
    let legend_room = (Constraint::Ratio(1, 2), Constraint::Ratio(1, 2));
    Chart::new(drawn)
        .legend_position(Some(LegendPosition::TopLeft))
        .hidden_legend_constraints(legend_room)
        .block(Block::bordered().title(title))
        .x_axis(Axis::default().bounds([0.0, seconds]).labels(ticks(seconds, " s")))
        .y_axis(Axis::default().bounds([0.0, shown.peak_rps]).labels(ticks(shown.peak_rps, "")))
}

fn figures<'a>(shown: &Frame<'_>, area: Rect) -> Paragraph<'a> {
    let last = &shown.progress.last_second;
    let strong = Style::new().add_modifier(Modifier::BOLD);
    let p99 = shown.progress.last_second_p99_ms.map_or("-".to_owned(), |ms| format!("{ms:.0} ms"));
    let rates = Line::from(vec![
        Span::raw("offered "),
        Span::styled(format!("{:<6}", last.offered), strong),
        Span::raw("goodput "),
        Span::styled(format!("{:<6}", last.goodput), strong.fg(Color::Green)),
        Span::raw("refused "),
        Span::styled(format!("{:<6}", last.refused), strong),
        Span::raw("gave up "),
        Span::styled(format!("{:<6}", last.timed_out), strong.fg(Color::Red)),
        Span::raw("p99 "),
        Span::styled(p99, strong),
    ]);
    let verdict = match &shown.state {
        Some(state) => Line::from(vec![Span::raw("Flashweir: "), Span::styled(said(Some(state)), strong)]),
        None => Line::from("no Flashweir: the crowd goes straight to the origin"),
    };
    // On a very narrow terminal the frame would leave no room for the figures.
    let block =
        if area.width > 60 { Block::bordered().title(" last second (q ends) ") } else { Block::new() };
    Paragraph::new(vec![rates, verdict]).block(block)
}

/// Keys pressed since the last look; raw mode turns Ctrl-C into one of them.
fn pressed() -> io::Result<Wish> {
    while event::poll(Duration::ZERO)? {
        if let Event::Key(key) = event::read()? {
            let control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
            if control_c || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) {
                return Ok(Wish::Stop);
            }
        }
    }
    Ok(Wish::GoOn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::watch::State;
    use flashweir_load::{Counts, Progress};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use std::time::Instant;

    fn shown<'a>(progress: &'a Progress, visit: &'static str, state: Option<State>) -> Frame<'a> {
        Frame { visit, phase: "the crowd is here", progress, state, capacity_rps: 203.0, peak_rps: 1000.0 }
    }

    fn progress(second: u64) -> Progress {
        Progress {
            started: Instant::now(),
            elapsed: Duration::from_secs(second),
            length: Duration::from_secs(40),
            totals: Counts::default(),
            last_second: Counts { offered: 20 * second, goodput: 190, refused: 7, ..Counts::default() },
            last_second_p50_ms: None,
            last_second_p99_ms: Some(321.4),
            lag_p99_us: 0,
        }
    }

    fn screen(size: (u16, u16), frame: &Frame<'_>, lines: &Lines) -> String {
        let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
        terminal.draw(|drawn| draw(drawn, frame, lines)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn the_second_visit_shows_the_verdict_and_the_goodput_of_both() {
        let mut lines = Lines::default();
        for (visit, second) in [("without", 1), ("without", 30), ("with", 1), ("with", 20)] {
            lines.gather(&shown(&progress(second), visit, None));
        }
        assert_eq!((lines.offered.len(), lines.before.as_ref().unwrap().1.len()), (2, 2));

        let now = progress(20);
        let state = State {
            mode: "full".to_owned(),
            cause: "surge_ok".to_owned(),
            limit: Some(2),
            waiting: 31,
            shed: 400,
        };
        let screen = screen((80, 24), &shown(&now, "with", Some(state)), &lines);
        let wanted = [
            "Flashweir demo: with",
            "20.0 s  the crowd is here",
            "capacity 203/s",
            "goodput without",
            "offered 400",
            "p99 321 ms",
            "full (surge_ok), 2 at once, 31 wait",
        ];
        for wanted in wanted {
            assert!(screen.contains(wanted), "{screen} lacks {wanted}");
        }
    }

    #[test]
    fn a_tiny_terminal_is_no_trouble() {
        let lines = Lines::default();
        for size in [(1, 1), (10, 3), (40, 8)] {
            screen(size, &shown(&progress(3), "with", None), &lines);
        }
    }
}
