//! A table of a page: a caption, a head and rows whose first cell names the row.

/// Text in rows and columns; the first column names the row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    pub(crate) caption: String,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<(String, Vec<String>)>,
}

impl Table {
    /// A table without rows; the first column's heading comes first.
    #[must_use]
    pub fn new(caption: impl Into<String>, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            caption: caption.into(),
            columns: columns.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row: its name and its cells.
    #[must_use]
    pub fn row(
        mut self,
        name: impl Into<String>,
        cells: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.rows.push((name.into(), cells.into_iter().map(Into::into).collect()));
        self
    }
}
