//! Utilisation in ORCA's load reports (`xds.data.orca.v3.OrcaLoadReport`).

use super::{Useless, in_range, number};
use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use flashweir_core::limits::LOAD_REPORT_METRICS;
use serde::Deserialize;

/// A processor may be reported as more than fully used, but not a hundred times over.
const MOST: f64 = 100.0;
const CPU: &str = "cpu_utilization";
const APPLICATION: &str = "application_utilization";

/// gRPC leaves the padding out, others do not.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The two utilisations; a report has either, both or none.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Utilisations {
    #[serde(rename = "cpu_utilization", alias = "cpuUtilization")]
    cpu: Option<f64>,
    #[serde(rename = "application_utilization", alias = "applicationUtilization")]
    application: Option<f64>,
}

impl Utilisations {
    /// In thousandths. The application knows better; zero is how the format says that it does not.
    fn milli(&self) -> Result<u32, Useless> {
        let value = self.application.filter(|&value| value != 0.0).or(self.cpu).ok_or(Useless::Other)?;
        Ok((in_range(value, MOST)? * 1_000.0) as u32)
    }
}

/// A value of `endpoint-load-metrics`: its first word says in which form the rest is.
pub(super) fn any(value: &str) -> Result<u32, Useless> {
    let (form, report) = value.trim().split_once(' ').ok_or(Useless::Malformed)?;
    match form {
        "TEXT" => text(report),
        "JSON" => serde_json::from_str::<Utilisations>(report).map_err(|_| Useless::Malformed)?.milli(),
        "BIN" => binary(report),
        _ => Err(Useless::Malformed),
    }
}

/// `cpu_utilization=0.3,named_metrics.queue=2`; a colon will do, too.
fn text(report: &str) -> Result<u32, Useless> {
    let mut known = Utilisations::default();
    for (count, pair) in report.split(',').enumerate() {
        if count >= LOAD_REPORT_METRICS {
            return Err(Useless::OutOfRange);
        }
        let (name, value) = pair.split_once(['=', ':']).ok_or(Useless::Malformed)?;
        let place = match name.trim() {
            CPU => &mut known.cpu,
            APPLICATION => &mut known.application,
            _ => continue,
        };
        if place.replace(number(value.trim(), MOST)?).is_some() {
            return Err(Useless::Malformed);
        }
    }
    known.milli()
}

/// The protocol buffer in base64. Only fields 1 and 9, both doubles, are looked at; all others are stepped
/// over.
pub(super) fn binary(value: &str) -> Result<u32, Useless> {
    let bytes = BASE64.decode(value.trim()).map_err(|_| Useless::Malformed)?;
    fields(&bytes).ok_or(Useless::Malformed)?.milli()
}

fn fields(bytes: &[u8]) -> Option<Utilisations> {
    let (mut known, mut rest) = (Utilisations::default(), bytes);
    while !rest.is_empty() {
        let tag = varint(&mut rest)?;
        let length = match tag & 7 {
            0 => {
                varint(&mut rest)?;
                0
            }
            1 => 8,
            2 => usize::try_from(varint(&mut rest)?).ok()?,
            5 => 4,
            _ => return None,
        };
        let (field, after) = rest.split_at_checked(length)?;
        rest = after;
        let place = match tag {
            // Number of the field times eight, plus 1 for eight bytes.
            0x09 => &mut known.cpu,
            0x49 => &mut known.application,
            _ => continue,
        };
        *place = Some(f64::from_le_bytes(field.try_into().ok()?));
    }
    Some(known)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
