//! Goal: uploads that progress are kept, stalled ones go first, and every count comes back to zero. Times
//! are literal.

use super::*;
use flashweir_telemetry::Telemetry;

const POOL: HoldOptions = HoldOptions { pool: 0, capacity: 16 };

fn room() -> Rc<UploadRoom> {
    UploadRoom::new(Telemetry::gateway(1, "test").worker(0), Rc::default())
}

fn at_ms(ms: u64) -> Instant {
    Instant::from_duration(Duration::from_secs(100) + Duration::from_millis(ms))
}

fn waiting(ticket: UploadTicket, since_ms: u64) -> UploadTicket {
    ticket.waits(at_ms(since_ms), Waker::noop());
    ticket
}

fn gathered(room: &Rc<UploadRoom>, client: u64, since_ms: u64) -> UploadTicket {
    waiting(room.gather(at_ms(since_ms), client, at_ms(since_ms + 30_000)), since_ms)
}

#[test]
fn of_too_many_bodies_the_slowest_goes() {
    let room = room();
    let honest = gathered(&room, 1, 0);
    let mut silent: Vec<_> =
        (0..limits::UPLOADS_GATHERED as u64 - 1).map(|n| gathered(&room, 10 + n, 0)).collect();
    honest.received(at_ms(900), 10_000);
    let fresh = gathered(&room, 2, 1_000);
    assert_eq!((honest.cut(), fresh.cut()), (None, None));
    let cut = silent.iter().filter(|ticket| ticket.cut() == Some(UploadCut::Gathered)).count();
    assert_eq!(cut, 1, "one for the one that came");
    silent.clear();
    drop((honest, fresh));
    assert!(room.is_empty());
    assert_eq!((room.gathering.get(), room.bytes.get(), room.clients.borrow().len()), (0, 0, 0));
}

#[test]
fn a_clients_uploads_displace_only_its_own() {
    let room = room();
    let other = gathered(&room, 2, 0);
    let own: Vec<_> = (0..=limits::UPLOADS_GATHERED_PER_CLIENT).map(|_| gathered(&room, 1, 0)).collect();
    assert_eq!(other.cut(), None);
    assert_eq!(own.iter().filter(|ticket| ticket.cut() == Some(UploadCut::PerClient)).count(), 1);
}

#[test]
fn an_upload_is_judged_once_its_client_was_waited_for_half_a_second() {
    let is_the_fast_one_cut = |silent_since_ms| {
        let room = room();
        let fast = gathered(&room, 1, 0);
        fast.received(at_ms(900), 10_000);
        let _silent: Vec<_> =
            (1..limits::UPLOADS_GATHERED_PER_CLIENT).map(|_| gathered(&room, 1, silent_since_ms)).collect();
        let _fresh = gathered(&room, 1, 1_000);
        fast.cut() == Some(UploadCut::PerClient)
    };
    assert!(is_the_fast_one_cut(501), "nothing is known of the others yet");
    assert!(!is_the_fast_one_cut(500), "the others have sent nothing for long enough");
}

#[test]
fn bytes_in_memory_are_bounded() {
    let room = room();
    let tickets: Vec<_> = (0..3).map(|client| gathered(&room, client, 0)).collect();
    tickets[0].received(at_ms(1_000), limits::UPLOADS_GATHERED_BYTES / 2);
    tickets[1].received(at_ms(1_000), limits::UPLOADS_GATHERED_BYTES / 4);
    tickets[2].received(at_ms(1_000), limits::UPLOADS_GATHERED_BYTES / 2);
    let cut: Vec<_> = tickets.iter().map(UploadTicket::cut).collect();
    assert_eq!(cut, [None, Some(UploadCut::Bytes), None], "the one that brought least in the time");
    assert!(room.bytes.get() <= limits::UPLOADS_GATHERED_BYTES);
}

#[test]
fn what_is_overdue_is_cut() {
    let room = room();
    let ticket = gathered(&room, 1, 0);
    room.sweep(at_ms(29_900));
    assert_eq!(ticket.cut(), None);
    room.sweep(at_ms(30_000));
    assert_eq!(ticket.cut(), Some(UploadCut::Timeout));
}

#[test]
fn slow_uploads_hold_a_part_of_the_pool_and_the_fastest_stay() {
    let room = room();
    let held: Vec<_> = (0..16).map(|client| waiting(room.hold(client, POOL, None), 0)).collect();
    for (index, ticket) in held.iter().enumerate() {
        ticket.received(at_ms(400), index * 1_000);
        ticket.waits(at_ms(400), Waker::noop());
    }
    room.sweep(at_ms(450));
    assert!(held.iter().all(|ticket| ticket.cut().is_none()), "no client is slow before the grace is over");
    room.sweep(at_ms(600));
    let kept: Vec<_> = (0..16).filter(|&index| held[index].cut().is_none()).collect();
    assert_eq!(kept, (8..16).collect::<Vec<_>>());
    let other = HoldOptions { pool: 1, ..POOL };
    let elsewhere = waiting(room.hold(99, other, None), 600);
    room.sweep(at_ms(2_000));
    assert_eq!(elsewhere.cut(), None, "another service's pool is another pool");
}

#[test]
fn one_client_holds_a_part_of_that_part() {
    let room = room();
    let held: Vec<_> = (0..5).map(|_| waiting(room.hold(7, POOL, None), 0)).collect();
    room.sweep(at_ms(600));
    assert_eq!(held.iter().filter(|ticket| ticket.cut() == Some(UploadCut::HeldPerClient)).count(), 3);
    assert!(!room.may_stream(7, POOL) && room.may_stream(8, POOL));
}
