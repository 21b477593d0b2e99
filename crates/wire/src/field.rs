//! Encoding of values as bytes, alone or as the change since an earlier value.
//!
//! | value | alone | after another |
//! |---|---|---|
//! | whole number | variable length, 7 bits a byte | the difference, zigzag, likewise |
//! | `f64` | 8 bytes, so bit for bit | the bytes that differ, between the same ones before and behind |
//! | option | 0, or 1 and the value | likewise |
//! | list | its length, the items, each after the one before | its length, how many items changed, and these with their gaps |
//! | struct | its fields | a bit for each field that changed, and these fields |
//!
//! Own code instead of a codec on `serde`: the types of the pure crates derive nothing, and mirrors of them
//! would be as much code as this; here one line for each type also gives the differences by field, errors
//! that name the field, and deltas.

use crate::reader::{Fault, Problem, Reader};
use flashweir_core::{Duration, Instant, Rate};

/// A value that can be written, read, and compared bit for bit.
pub(crate) trait Field: Sized + Clone {
    /// Writes the value, as a change of `before` if there is one.
    fn put(&self, before: Option<&Self>, out: &mut Vec<u8>);
    /// Reads what [`put`](Self::put) wrote after the same `before`.
    fn take(before: Option<&Self>, from: &mut Reader<'_>) -> Result<Self, Fault>;
    /// Returns whether they are the same bit for bit.
    fn is_same(&self, other: &Self) -> bool;
    /// Adds where the two differ to `found`; `path` names this value.
    fn compare(&self, other: &Self, path: &str, found: &mut Vec<Difference>);
}

/// One field in which two values differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its name, with the names of what it is in: `explanation.margin`, `classes[2].limit`.
    pub field: String,
    /// Value in the first.
    pub first: String,
    /// Value in the second.
    pub second: String,
}

/// Item of a list, and the maximum length of the list.
pub(crate) trait Item: Field {
    const MOST: usize;
    /// Each is like the one before it in the list, not like the one in the same place of an earlier list.
    const IS_SERIES: bool = false;
}

pub(crate) fn put_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Small differences in either direction become small numbers.
pub(crate) const fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ ((difference as i64 >> 63) as u64)
}

pub(crate) const fn unzigzag(number: u64) -> u64 {
    (number >> 1) ^ (number & 1).wrapping_neg()
}

pub(crate) fn note<T: core::fmt::Debug>(first: &T, second: &T, path: &str, found: &mut Vec<Difference>) {
    let (first, second) = (format!("{first:?}"), format!("{second:?}"));
    found.push(Difference { field: path.to_owned(), first, second });
}

/// Comparison of a value that has no fields to name.
macro_rules! compared_whole {
    () => {
        fn is_same(&self, other: &Self) -> bool {
            self == other
        }

        fn compare(&self, other: &Self, path: &str, found: &mut Vec<$crate::field::Difference>) {
            if self != other {
                $crate::field::note(self, other, path, found);
            }
        }
    };
}

macro_rules! whole_numbers {
    ($($type:ty),+) => {$(
        impl Field for $type {
            fn put(&self, before: Option<&Self>, out: &mut Vec<u8>) {
                let number = *self as u64;
                put_number(before.map_or(number, |&before| zigzag(number.wrapping_sub(before as u64))), out);
            }

            fn take(before: Option<&Self>, from: &mut Reader<'_>) -> Result<Self, Fault> {
                let number = from.number()?;
                let number = before.map_or(number, |&before| (before as u64).wrapping_add(unzigzag(number)));
                Self::try_from(number).map_err(|_| from.fault(Problem::TooHigh { value: number, most: Self::MAX as u64 }))
            }

            compared_whole!();
        }
    )+};
}

whole_numbers!(u8, u16, u32, u64, usize);

/// Times and rates are written as the whole number they hold.
macro_rules! as_number {
    ($type:ty, $to:expr, $of:expr) => {
        impl Field for $type {
            fn put(&self, before: Option<&Self>, out: &mut Vec<u8>) {
                let number: fn(&Self) -> u64 = $to;
                number(self).put(before.map(number).as_ref(), out);
            }

            fn take(before: Option<&Self>, from: &mut Reader<'_>) -> Result<Self, Fault> {
                let number: fn(&Self) -> u64 = $to;
                u64::take(before.map(number).as_ref(), from).map($of)
            }

            compared_whole!();
        }
    };
}

as_number!(Instant, |instant| instant.as_nanos(), Instant::from_nanos);
// Five hundred years fit.
as_number!(Duration, |duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX), Duration::from_nanos);
as_number!(Rate, |rate| rate.as_milli(), Rate::from_milli);

impl Field for bool {
    fn put(&self, _: Option<&Self>, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn take(_: Option<&Self>, from: &mut Reader<'_>) -> Result<Self, Fault> {
        match from.byte()? {
            byte @ (0 | 1) => Ok(byte == 1),
            byte => Err(from.fault(Problem::NoSuch { value: byte.into() })),
        }
    }

    compared_whole!();
}

impl Field for f64 {
    fn put(&self, before: Option<&Self>, out: &mut Vec<u8>) {
        let Some(before) = before else {
            out.extend(self.to_bits().to_be_bytes());
            return;
        };
        let changed = self.to_bits() ^ before.to_bits();
        // Bytes that are the same in front, and behind; eight in front say all.
        let front = changed.leading_zeros() / 8;
        let behind = if front == 8 { 0 } else { changed.trailing_zeros() / 8 };
        out.push((front << 4 | behind) as u8);
        out.extend(&changed.to_be_bytes()[front as usize..(8 - behind) as usize]);
    }

    fn take(before: Option<&Self>, from: &mut Reader<'_>) -> Result<Self, Fault> {
        let Some(before) = before else {
            return Ok(Self::from_bits(u64::from_be_bytes(from.bytes()?)));
        };
        let shape = from.byte()?;
        let (front, behind) = (usize::from(shape >> 4), usize::from(shape & 0x0F));
        if front + behind > 8 {
            return Err(from.fault(Problem::NoSuch { value: shape.into() }));
        }
        let mut changed = [0; 8];
        for byte in &mut changed[front..8 - behind] {
            *byte = from.byte()?;
        }
        Ok(Self::from_bits(before.to_bits() ^ u64::from_be_bytes(changed)))
    }

    fn is_same(&self, other: &Self) -> bool {
        self.to_bits() == other.to_bits()
    }

    fn compare(&self, other: &Self, path: &str, found: &mut Vec<Difference>) {
        if !self.is_same(other) {
            note(self, other, path, found);
        }
    }
}

impl<T: Field + core::fmt::Debug> Field for Option<T> {
    fn put(&self, before: Option<&Self>, out: &mut Vec<u8>) {
        out.push(u8::from(self.is_some()));
        if let Some(value) = self {
            value.put(before.and_then(Option::as_ref), out);
        }
    }

    fn take(before: Option<&Self>, from: &mut Reader<'_>) -> Result<Self, Fault> {
        let is_some = bool::take(None, from)?;
        is_some.then(|| T::take(before.and_then(Option::as_ref), from)).transpose()
    }

    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Some(one), Some(other)) => one.is_same(other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }

    fn compare(&self, other: &Self, path: &str, found: &mut Vec<Difference>) {
        match (self, other) {
            (Some(one), Some(other)) => one.compare(other, path, found),
            (None, None) => {}
            (one, other) => note(one, other, path, found),
        }
    }
}

impl<T: Item> Field for Vec<T> {
    fn put(&self, before: Option<&Self>, out: &mut Vec<u8>) {
        put_number(self.len() as u64, out);
        let Some(before) = before.filter(|_| !T::IS_SERIES) else {
            let mut last = None;
            for item in self {
                item.put(last, out);
                last = Some(item);
            }
            return;
        };
        let changed = || {
            let items = self.iter().enumerate();
            items.filter(|&(at, item)| before.get(at).is_none_or(|old| !item.is_same(old)))
        };
        put_number(changed().count() as u64, out);
        let mut next = 0;
        for (at, item) in changed() {
            put_number((at - next) as u64, out);
            item.put(before.get(at).or(self[..at].last()), out);
            next = at + 1;
        }
    }

    fn take(before: Option<&Self>, from: &mut Reader<'_>) -> Result<Self, Fault> {
        let len = from.length(T::MOST)?;
        let Some(before) = before.filter(|_| !T::IS_SERIES) else {
            let mut items = Self::new();
            for at in 0..len {
                let item = from.within_item(at, |from| T::take(items.last(), from))?;
                items.push(item);
            }
            return Ok(items);
        };
        let changed = from.length(len)?;
        let mut items: Self = before.iter().take(len).cloned().collect();
        for _ in 0..changed {
            let at = from.number()?;
            let at = usize::try_from(at).ok().and_then(|gap| gap.checked_add(from.next_item()));
            let at = at.filter(|&at| at < len && at <= items.len());
            let at = at.ok_or_else(|| from.fault(Problem::NoSuchItem))?;
            let old = before.get(at).or(items[..at].last()).cloned();
            let item = from.within_item(at, |from| T::take(old.as_ref(), from))?;
            if at < items.len() {
                items[at] = item
            } else {
                items.push(item)
            }
            from.set_next_item(at + 1);
        }
        from.set_next_item(0);
        if items.len() == len { Ok(items) } else { Err(from.fault(Problem::NoSuchItem)) }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().zip(other).all(|(one, other)| one.is_same(other))
    }

    fn compare(&self, other: &Self, path: &str, found: &mut Vec<Difference>) {
        if self.len() != other.len() {
            note(&self.len(), &other.len(), &format!("{path}.len"), found);
        }
        for (at, (one, other)) in self.iter().zip(other).enumerate() {
            one.compare(other, &format!("{path}[{at}]"), found);
        }
    }
}

/// Fields of structs, all of them: one that is added does not compile until it is written here.
macro_rules! record {
    ($type:ty { $($field:ident),+ $(,)? }) => {
        impl $crate::field::Field for $type {
            fn put(&self, before: Option<&Self>, out: &mut Vec<u8>) {
                let Self { $($field),+ } = self;
                let mut changed = u64::MAX;
                if let Some(before) = before {
                    let mut bit = 1u64;
                    changed = 0;
                    $(
                        changed |= if $field.is_same(&before.$field) { 0 } else { bit };
                        bit <<= 1;
                    )+
                    let _ = bit;
                    $crate::field::put_number(changed, out);
                }
                $(
                    if changed & 1 != 0 {
                        $field.put(before.map(|before| &before.$field), out);
                    }
                    changed >>= 1;
                )+
                let _ = changed;
            }

            fn take(before: Option<&Self>, from: &mut $crate::reader::Reader<'_>) -> Result<Self, $crate::reader::Fault> {
                let mut changed = if before.is_some() { from.number()? } else { u64::MAX };
                $(
                    let $field = match before {
                        Some(before) if changed & 1 == 0 => before.$field.clone(),
                        before => from.within(stringify!($field), |from| {
                            $crate::field::Field::take(before.map(|before| &before.$field), from)
                        })?,
                    };
                    changed >>= 1;
                )+
                if before.is_some() && changed != 0 {
                    return Err(from.fault($crate::reader::Problem::NoSuchField));
                }
                Ok(Self { $($field),+ })
            }

            fn is_same(&self, other: &Self) -> bool {
                $(self.$field.is_same(&other.$field))&&+
            }

            fn compare(&self, other: &Self, path: &str, found: &mut Vec<$crate::field::Difference>) {
                let dot = if path.is_empty() { "" } else { "." };
                $(self.$field.compare(&other.$field, &format!("{path}{dot}{}", stringify!($field)), found);)+
            }
        }
    };
}

/// Types of a few values, each by its place in a list.
macro_rules! choice {
    ($type:ty, $all:expr) => {
        impl $crate::field::Field for $type {
            fn put(&self, _: Option<&Self>, out: &mut Vec<u8>) {
                let all: &[Self] = $all;
                // Every value is in the list; a test says so for each.
                out.push(all.iter().position(|one| one == self).unwrap_or(usize::MAX) as u8);
            }

            fn take(
                _: Option<&Self>,
                from: &mut $crate::reader::Reader<'_>,
            ) -> Result<Self, $crate::reader::Fault> {
                let all: &[Self] = $all;
                let place = from.byte()?;
                let known = all.get(usize::from(place)).copied();
                known.ok_or_else(|| from.fault($crate::reader::Problem::NoSuch { value: place.into() }))
            }

            $crate::field::compared_whole!();
        }
    };
}

pub(crate) use {choice, compared_whole, record};
