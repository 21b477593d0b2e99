//! Questions to the kernel's networking (rtnetlink(7)), as far as the observer has any: queues, filters,
//! interfaces.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{FromRawFd as _, OwnedFd};

use netlink_packet_core::{NLM_F_REQUEST, NetlinkBuffer, NlasIterator};

/// Kinds of messages (linux/rtnetlink.h), and how many answers are asked for (linux/netlink.h).
pub(super) const GET_LINK: u16 = 18;
pub(super) const GET_QUEUES: u16 = 38;
pub(super) const NEW_FILTER: u16 = 44;
pub(super) const GET_FILTERS: u16 = 46;
pub(super) use netlink_packet_core::{NLM_F_ACK as ONE, NLM_F_DUMP as ALL};

const ERROR: u16 = 2;
const DONE: u16 = 3;
/// The most that the kernel says at once.
const MESSAGE_BYTES: usize = 32 << 10;

/// A socket to the kernel, of the network namespace it was opened in.
#[derive(Debug)]
pub(super) struct RouteNetlink {
    socket: File,
    asked: u32,
}

impl RouteNetlink {
    pub(super) fn open() -> io::Result<Self> {
        // The kernel has answered by the time it has taken the question, so no call ever waits.
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no pointers are involved.
        let socket = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just opened this descriptor for this process; no other owner exists.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        Ok(Self { socket: File::from(socket), asked: 0 })
    }

    /// Asks one question and hands every answer to `take`: its kind, and what is behind the header.
    pub(super) fn ask(
        &mut self,
        kind: u16,
        answers: u16,
        question: &[u8],
        mut take: impl FnMut(u16, &[u8]),
    ) -> io::Result<()> {
        self.asked = self.asked.wrapping_add(1);
        self.socket.write_all(&request(kind, answers, self.asked, question))?;
        let mut buffer = vec![0; MESSAGE_BYTES];
        loop {
            let bytes = self.socket.read(&mut buffer)?;
            let mut rest = &buffer[..bytes];
            while !rest.is_empty() {
                let message = NetlinkBuffer::new_checked(rest).map_err(io::Error::other)?;
                // Messages begin at multiples of four bytes. A checked one is not shorter than its header.
                let next = (message.length() as usize).next_multiple_of(4).min(rest.len());
                rest = &rest[next..];
                if message.sequence_number() != self.asked {
                    // The rest of an answer that was not read to its end.
                    continue;
                }
                match message.message_type() {
                    DONE => return Ok(()),
                    ERROR => return status(message.payload()),
                    kind => take(kind, message.payload()),
                }
            }
        }
    }
}

/// Of a message about traffic control (`struct tcmsg`): the question for everything below `parent` of an
/// interface.
pub(super) fn traffic_question(interface: i32, parent: u32) -> [u8; 20] {
    let mut question = [0; 20];
    question[4..8].copy_from_slice(&interface.to_ne_bytes());
    question[12..16].copy_from_slice(&parent.to_ne_bytes());
    question
}

/// An answer about traffic control: of which interface, below which parent, and its attributes.
pub(super) fn traffic_answer(payload: &[u8]) -> Option<(i32, u32, &[u8])> {
    let interface = payload.get(4..8)?.try_into().ok()?;
    Some((i32::from_ne_bytes(interface), number_at(payload, 12)?, payload.get(20..)?))
}

/// The hardware type of an interface (linux/if_arp.h).
pub(super) fn hardware_of(interface: i32) -> io::Result<u16> {
    let mut question = [0; 16];
    question[4..8].copy_from_slice(&interface.to_ne_bytes());
    let mut hardware = None;
    RouteNetlink::open()?.ask(GET_LINK, ONE, &question, |_, answer| {
        hardware = answer.get(2..4).map(|two| u16::from_ne_bytes([two[0], two[1]]));
    })?;
    hardware.ok_or_else(|| io::Error::other("the kernel says nothing of the interface"))
}

/// The value of the first attribute of a kind.
pub(super) fn attribute(attributes: &[u8], kind: u16) -> Option<&[u8]> {
    const HEADER_BYTES: usize = 4;
    let mut attributes = NlasIterator::new(attributes).flatten();
    let found = attributes.find(|attribute| attribute.kind() == kind)?;
    let length = usize::from(found.length());
    found.into_inner().get(HEADER_BYTES..length)
}

/// The 32-bit number at a place.
pub(super) fn number_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

fn request(kind: u16, answers: u16, number: u32, question: &[u8]) -> Vec<u8> {
    const HEADER_BYTES: usize = 16;
    let mut request = vec![0; HEADER_BYTES + question.len()];
    let length = request.len() as u32;
    let mut message = NetlinkBuffer::new(&mut request[..]);
    message.set_length(length);
    message.set_message_type(kind);
    message.set_flags(NLM_F_REQUEST | answers);
    message.set_sequence_number(number);
    message.payload_mut().copy_from_slice(question);
    request
}

/// The end of an answer: an error number, negative, or zero for success.
fn status(payload: &[u8]) -> io::Result<()> {
    match number_at(payload, 0).map(u32::cast_signed) {
        Some(0) => Ok(()),
        Some(number) => Err(io::Error::from_raw_os_error(-number)),
        None => Err(io::Error::other("the kernel's answer is cut off")),
    }
}
