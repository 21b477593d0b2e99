//! Columns of text that line up.

/// Lines of the rows: the first column begins at the left, the others end at the right. Rows may be of
/// different lengths.
pub(in super::super) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<_> = (0..columns)
        .map(|column| {
            rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (place, (cell, widest)) in row.iter().zip(&widths).enumerate() {
            let room = " ".repeat(widest - width(cell));
            match place {
                0 => line += &format!("{cell}{room}"),
                _ => line += &format!("  {room}{cell}"),
            }
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

fn width(cell: &str) -> usize {
    cell.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_begin_and_numbers_end_together() {
        let rows = [vec!["", "p50", "p99"], vec!["latency", "1.0", "12.0"], vec!["µs", "100.0"]];
        let rows = rows.map(|row| row.into_iter().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(aligned(&rows), "           p50   p99\nlatency    1.0  12.0\nµs       100.0\n");
        assert_eq!(aligned(&[]), "");
    }
}
