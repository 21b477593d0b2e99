//! The document of `/status` as some lines for people.

use serde_json::Value;

/// Version and verdict, and a table each of services and upstreams. A field that another version of the
/// gateway does not have is a dash.
pub(super) fn of(status: &Value) -> String {
    let mut text = format!(
        "flashweir {}, up {}, listening on {}\n\n{} For {}.\n\n",
        plain(&status["version"]),
        span(&status["uptime_s"]),
        items(&status["listening_on"]).map(plain).collect::<Vec<_>>().join(", "),
        plain(&status["verdict"]["explanation"]),
        span(&status["verdict"]["for_s"]),
    );
    if status["draining"] == true {
        text.push_str("It is draining: new requests are refused, and it ends with the last one.\n\n");
    }
    text.push_str(&shadow(status));
    let services = items(&status["services"]).map(|service| {
        let (requests, sentry) = (&service["requests"], &service["sentry"]);
        let in_flight = [&sentry["in_flight"], &service["in_flight_upstream"]];
        let in_flight = in_flight.into_iter().find(|count| !count.is_null()).unwrap_or(&Value::Null);
        vec![
            plain(&service["name"]),
            count(&requests["offered"]),
            count(&requests["admitted"]),
            count(&requests["shed"]),
            count(&sentry["waiting"]),
            count(in_flight),
            count(&sentry["plan"]["limit"]),
        ]
    });
    let head = ["service", "offered", "admitted", "refused", "waiting", "in flight", "limit"];
    text.push_str(&table(&head, services.collect()));
    let upstreams = items(&status["upstreams"]).map(|upstream| {
        let state = match upstream["out_because"].as_str() {
            None => "in use".to_owned(),
            Some(cause) => format!("left out: {cause}"),
        };
        vec![plain(&upstream["url"]), plain(&upstream["service"]), state, count(&upstream["in_flight"])]
    });
    text.push('\n');
    text.push_str(&table(&["upstream", "service", "state", "in flight"], upstreams.collect()));
    text
}

/// A paragraph on shadow mode, where a part is in it.
fn shadow(status: &Value) -> String {
    let services = items(&status["services"]).filter(|service| service["shadow"] == true);
    let capacity: Vec<String> = services.map(|service| plain(&service["name"])).collect();
    let mut refuses_not = Vec::new();
    if status["shadow"] == true {
        refuses_not.push("because of a crowd".to_owned());
    }
    if !capacity.is_empty() {
        refuses_not.push(format!("for the capacity of {}", capacity.join(", ")));
    }
    if refuses_not.is_empty() {
        return String::new();
    }
    let admitted = match status["requests"]["shadow_shed"].as_u64() {
        Some(0) | None => String::new(),
        Some(number) => {
            format!(" {} would have been refused so far, and were let in.", count(&number.into()))
        }
    };
    format!("Shadow mode: no request is refused {}.{admitted}\n\n", refuses_not.join(", or "))
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A whole number with commas between thousands.
fn count(value: &Value) -> String {
    let Some(number) = value.as_f64() else { return plain(value) };
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A time in its two largest units.
fn span(seconds: &Value) -> String {
    let Some(seconds) = seconds.as_f64() else { return "-".to_owned() };
    let seconds = seconds.max(0.0) as u64;
    match (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0, s) => format!("{s} s"),
        (0, 0, min, s) => format!("{min} min {s} s"),
        (0, h, min, _) => format!("{h} h {min} min"),
        (d, h, ..) => format!("{d} d {h} h"),
    }
}

/// Columns, two blanks between them: text to the left, the columns whose values are numbers to the right.
fn table(head: &[&str], rows: Vec<Vec<String>>) -> String {
    let is_number = |text: &str| text == "-" || text.chars().all(|c| c.is_ascii_digit() || c == ',');
    let columns: Vec<(usize, bool)> = (0..head.len())
        .map(|column| {
            let cells = || rows.iter().map(|row| row[column].as_str());
            let width = cells().chain([head[column]]).map(|cell| cell.chars().count()).max().unwrap_or(0);
            (width, !rows.is_empty() && cells().all(is_number))
        })
        .collect();
    let line = |cells: Vec<&str>| {
        let cells = cells.into_iter().zip(&columns).map(|(cell, &(width, is_right))| match is_right {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        });
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    let rows = rows.iter().map(|row| row.iter().map(String::as_str).collect());
    [head.to_vec()].into_iter().chain(rows).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::{count, of, span};
    use serde_json::json;

    #[test]
    fn a_crowd_is_told_in_some_lines() {
        let status = json!({
            "version": "0.1.0", "uptime_s": 192.7, "listening_on": ["127.0.0.1:8080"], "draining": false,
            "verdict": {"explanation": "More requests than the origin can serve.", "for_s": 42.1},
            "services": [{
                "name": "shop", "requests": {"offered": 13_781, "admitted": 6_106, "shed": 7_675},
                "sentry": {"in_flight": 12, "waiting": 3, "plan": {"limit": 14}},
            }],
            "upstreams": [
                {"service": "shop", "url": "http://a:3000/", "in_flight": 12, "out_because": null},
                {"service": "shop", "url": "http://b/", "in_flight": 0, "out_because": "unreachable"},
            ],
        });
        let expected = "\
flashweir 0.1.0, up 3 min 12 s, listening on 127.0.0.1:8080

More requests than the origin can serve. For 42 s.

service  offered  admitted  refused  waiting  in flight  limit
shop      13,781     6,106    7,675        3         12     14

upstream        service  state                  in flight
http://a:3000/  shop     in use                        12
http://b/       shop     left out: unreachable          0
";
        assert_eq!(of(&status), expected);
    }

    #[test]
    fn shadow_mode_says_what_is_not_refused_and_how_many_would_have_been() {
        let shadow = |crowd: bool, capacity: bool, number: u64| {
            super::shadow(&json!({
                "shadow": crowd, "requests": {"shadow_shed": number},
                "services": [{"name": "shop", "shadow": capacity}, {"name": "api", "shadow": false}],
            }))
        };
        assert_eq!(shadow(false, false, 3), "");
        assert_eq!(shadow(true, false, 0), "Shadow mode: no request is refused because of a crowd.\n\n");
        assert_eq!(
            shadow(true, true, 1_765),
            "Shadow mode: no request is refused because of a crowd, or for the capacity of shop. 1,765 would have been refused \
             so far, and were let in.\n\n"
        );
        assert!(shadow(false, true, 0).contains("refused for the capacity of shop.\n"));
    }

    #[test]
    fn a_document_without_fields_is_no_panic() {
        assert!(!of(&json!({"services": [{}], "upstreams": [{}]})).contains("left out"));
        assert!(of(&json!(null)).starts_with("flashweir -"));
    }

    #[test]
    fn numbers_and_times_are_as_people_read_them() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(|n| count(&json!(n))), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(span(&json!(59.9)), "59 s");
        assert_eq!(span(&json!(7_384)), "2 h 3 min");
        assert_eq!(span(&json!(200_000)), "2 d 7 h");
    }
}
