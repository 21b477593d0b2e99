//! The cells of the capacity matrix, and which of them the words of a command choose.

use crate::cell::{Cell, Change, Spread};
use flashweir_core::Rng;
use std::fmt;

/// The words of the command.
pub(crate) struct Words(Vec<String>);

impl Words {
    /// As they were given.
    pub(crate) fn given() -> Self {
        Self(std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect())
    }

    /// The number behind `key`, as in `seed=3`.
    ///
    /// # Panics
    /// When what is behind it is none.
    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        let given = self.0.iter().find_map(|word| word.strip_prefix(key))?;
        Some(given.parse().unwrap_or_else(|_| panic!("{key}{given}: a number is wanted")))
    }

    /// Seeds of crowds: `seeds=` of them from `seed=` on, one from 1 on where nothing is said.
    ///
    /// # Panics
    /// When there is none.
    pub(crate) fn seeds(&self) -> Vec<u64> {
        let first = self.number("seed=").unwrap_or(1);
        let count = self.number("seeds=").unwrap_or(1);
        assert!(count > 0, "seeds=0: at least one crowd is wanted");
        (first..first + count).collect()
    }

    /// Returns true if this word is among them.
    pub(crate) fn has(&self, word: &str) -> bool {
        self.0.iter().any(|one| one == word)
    }

    /// The cells of the matrix chosen by the words: see [`chosen`](Self::chosen).
    ///
    /// # Panics
    /// When there is none.
    pub(crate) fn cells(&self, commands: &[&str]) -> Vec<Cell> {
        self.chosen(all_cells(), commands)
    }

    /// The cells whose names have all words that are neither options (`sample=N`) nor one of `commands`: N of
    /// them where `sample=N` is given, another sample for each `shuffle=M`.
    ///
    /// # Panics
    /// When there is none.
    pub(crate) fn chosen<C: fmt::Display>(&self, mut cells: Vec<C>, commands: &[&str]) -> Vec<C> {
        let filters = self.filters(commands);
        cells.retain(|cell| {
            let name = format!("{cell} ");
            filters.iter().all(|word| name.contains(&format!("{word} ")))
        });
        let mut rng = Rng::new(self.number("shuffle=").unwrap_or(99));
        for last in (1..cells.len()).rev() {
            cells.swap(last, rng.below(last as u64 + 1) as usize);
        }
        cells.truncate(self.number("sample=").unwrap_or(u64::MAX) as usize);
        assert!(!cells.is_empty(), "no cell has all of the words {filters:?}");
        cells
    }

    /// The words that are neither options nor one of `commands`.
    pub(crate) fn filters(&self, commands: &[&str]) -> Vec<&str> {
        let words = self.0.iter().map(String::as_str);
        words.filter(|word| !is_option(word) && !commands.contains(word)).collect()
    }
}

/// `R=1` and `c=4` are words of a cell's name.
fn is_option(word: &str) -> bool {
    ["sample=", "shuffle=", "seed=", "seeds="].iter().any(|option| word.starts_with(option))
}

fn all_cells() -> Vec<Cell> {
    use Change::{ColdStart, FewerCores, MixShift, MoreCores, Pool, Retrograde, Slower, Steady};
    let changes = [
        Steady,
        FewerCores,
        Slower,
        MoreCores,
        ColdStart,
        Retrograde(0.005),
        Retrograde(0.02),
        Pool,
        MixShift,
    ];
    let mut cells = Vec::new();
    for cores in [1, 4, 16, 64] {
        for work_ms in [1, 15, 100, 500] {
            for spread in [Spread::Constant, Spread::Exponential, Spread::Heavy, Spread::ByPage] {
                for target_s in [0.3, 1.0, 3.0] {
                    for load in [1.5, 3.0, 10.0] {
                        for change in changes {
                            cells.push(Cell { cores, work_ms, spread, target_s, load, change });
                        }
                    }
                }
            }
        }
    }
    cells.retain(Cell::makes_sense);
    cells
}
