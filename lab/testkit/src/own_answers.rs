//! Answers that say whose they are: with a number, so that a copy is known from a new answer, and with what
//! the server knew of who asked.

use crate::message::Message;

/// Answers of which each is for one user, for any caching instructions of the server: field lines of the
/// answer, and of both users.
pub const PRIVATE: [(&str, &str, &str); 13] = [
    ("Cache-Control: private, max-age=60\r\n", "Cookie: id=a\r\n", "Cookie: id=b\r\n"),
    ("Cache-Control: no-store\r\n", "Cookie: id=a\r\n", "Cookie: id=b\r\n"),
    ("Cache-Control: public, s-maxage=60\r\nSet-Cookie: id=1\r\n", "", ""),
    ("Cache-Control: max-age=60\r\nVary: *\r\n", "Cookie: id=a\r\n", "Cookie: id=b\r\n"),
    ("Cache-Control: max-age=60\r\n", "Authorization: Basic YTph\r\n", "Authorization: Basic Yjpi\r\n"),
    (
        "Cache-Control: public, s-maxage=60\r\n",
        "Authorization: Basic YTph\r\n",
        "Authorization: Basic Yjpi\r\n",
    ),
    // The server forgot to say that it depends on the cookie.
    ("Cache-Control: max-age=60\r\n", "Cookie: id=a\r\n", "Cookie: id=b\r\n"),
    ("Cache-Control: public, max-age=60\r\nVary: Cookie\r\n", "Cookie: id=a\r\n", "Cookie: id=b\r\n"),
    ("", "Cookie: id=a\r\n", "Cookie: id=b\r\n"),
    ("Cache-Control: no-cache\r\n", "Cookie: id=a\r\n", "Cookie: id=b\r\n"),
    ("Cache-Control: public, max-age=60, private=\"x\"\r\n", "Cookie: id=a\r\n", "Cookie: id=b\r\n"),
    (
        "Cache-Control: public, s-maxage=60\r\nCDN-Cache-Control: private\r\n",
        "Cookie: id=a\r\n",
        "Cookie: id=b\r\n",
    ),
    ("Cache-Control: private\r\nCDN-Cache-Control: max-age=60\r\n", "Cookie: id=a\r\n", "Cookie: id=b\r\n"),
];

/// The body of such an answer: `3 for cookie=a=1; authorization=-; host=shop.example;`.
#[must_use]
pub fn own_answer(number: usize, request: &Message) -> String {
    let who = |name: &str| request.field(name).unwrap_or("-").to_owned();
    let (cookie, authorization, host) = (who("cookie"), who("authorization"), who("host"));
    format!("{number} for cookie={cookie}; authorization={authorization}; host={host};")
}

/// Index in [`PRIVATE`] that a request asks for: the path of its target is the number.
///
/// # Panics
/// If it is none.
#[must_use]
pub fn private_case(request: &Message) -> usize {
    let target = request.start.split(' ').nth(1).unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default();
    path.trim_start_matches('/').parse().expect("the number of a case")
}

/// The number of an answer.
///
/// # Panics
/// If it has none.
#[must_use]
pub fn number_of(answer: &Message) -> usize {
    let text = answer.text();
    let number = text.split(' ').next().and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("no number: {} {text}", String::from_utf8_lossy(&answer.head)))
}

/// Returns whether an answer was made for the user with this field line, or for no user if that is empty.
#[must_use]
pub fn is_made_for(answer: &Message, field: &str) -> bool {
    let user = field.trim().split_once(": ").map_or("-", |(_, value)| value);
    let name = if field.starts_with("Authorization") { "authorization" } else { "cookie" };
    answer.text().contains(&format!("{name}={user};"))
}
