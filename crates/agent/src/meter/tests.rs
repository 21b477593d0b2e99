//! Goal: the word is right for each kind of shortage, and for none. Method: readings one second after
//! another.

use super::*;
use proptest::prelude::{ProptestConfig, any, prop_assert, proptest};

/// A machine with two processors, half of each of which is used, by one thread of the service.
fn calm(second: u64) -> Reading {
    let us = second * 1_000_000;
    Reading {
        machine: MachineCpu { processors: 2, idle_ticks: second * 100 },
        threads: vec![ThreadTime { id: 7, ran_ns: us * 500, waited_ns: us * 10 }],
        runnable: Some(1),
        memory: Some((400, 1_000)),
        cpu_pressure: Some(Pressure { some_us: us / 100, full_us: 0 }),
        memory_pressure: Some(Pressure::default()),
        disk_pressure: Some(Pressure::default()),
        ..Reading::default()
    }
}

/// The report after ten seconds of such readings.
fn after_ten(mut change: impl FnMut(u64, &mut Reading)) -> LoadReport {
    let mut meter = Meter::default();
    let reports = (0..=10).map(|second| {
        let mut reading = calm(second);
        change(second, &mut reading);
        meter.report(Instant::from_secs(second), reading)
    });
    reports.last().flatten().expect("a report")
}

#[test]
fn a_calm_service_is_short_of_nothing() {
    let report = after_ten(|_, _| {});
    assert_eq!(report.short_of, Shortage::Nothing);
    assert!((report.processor.utilisation - 1.0 / 3.0).abs() < 1e-6, "{report:?}");
    assert!((report.processor.busiest_thread.unwrap() - 0.51).abs() < 1e-6);
    assert!((report.processor.run_queue.unwrap() - 0.01).abs() < 1e-6);
    assert_eq!(report.memory.utilisation, Some(0.4));
    assert!(report.explanation.contains("33 %"), "{}", report.explanation);
    assert_eq!(report.orca.cpu_utilization, report.processor.utilisation);
}

#[test]
fn each_shortage_has_its_word() {
    let stalled = |share: f64| move |second: u64| (second as f64 * share * 1e6) as u64;
    let memory = after_ten(|second, it| it.memory_pressure.as_mut().unwrap().some_us = stalled(0.3)(second));
    let disk = after_ten(|second, it| it.disk_pressure.as_mut().unwrap().some_us = stalled(0.3)(second));
    let full = after_ten(|second, it| {
        it.machine.idle_ticks = 0;
        let thread = |id| ThreadTime { id, ran_ns: second * 850_000_000, waited_ns: 0 };
        it.threads = vec![thread(7), thread(8)];
    });
    let one_thread = after_ten(|second, it| {
        (it.machine.processors, it.machine.idle_ticks) = (64, second * 6_300);
        it.threads[0].ran_ns = second * 990_000_000;
    });
    let starved_thread = after_ten(|second, it| {
        it.threads[0] = ThreadTime { id: 7, ran_ns: second * 300_000_000, waited_ns: second * 650_000_000 };
    });
    let throttled = after_ten(|second, it| {
        it.group = Some(GroupCpu { usage_us: second * 200_000, throttled_us: second * 500_000 });
        it.quota = Some(2.0);
    });
    let within_quota = after_ten(|second, it| {
        it.group = Some(GroupCpu { usage_us: second * 480_000, throttled_us: 0 });
        it.quota = Some(0.5);
    });
    let of_processor = [&full, &one_thread, &starved_thread, &throttled, &within_quota].map(|it| it.short_of);
    assert_eq!(of_processor, [Shortage::Processor; 5]);
    use Shortage::{Disk, Memory};
    assert_eq!([memory.short_of, disk.short_of], [Memory, Disk]);
    assert!(
        one_thread.explanation.contains("busiest thread ran, or was ready to, 100 %"),
        "{}",
        one_thread.explanation
    );
    assert!(throttled.explanation.contains("quota"), "{}", throttled.explanation);
    // A machine that thrashes also waits for its disk.
    let both = after_ten(|second, it| {
        it.memory_pressure.as_mut().unwrap().some_us = stalled(0.3)(second);
        it.disk_pressure.as_mut().unwrap().some_us = stalled(0.9)(second);
    });
    assert_eq!(both.short_of, Memory);
}

/// A neighbour takes everything: the service uses little, and can have no more. That is a shortage if it
/// wants more.
#[test]
fn what_others_take_counts_for_a_service_that_wants_it() {
    let beside_a_neighbour = |waited_part: f64| {
        after_ten(|second, it| {
            it.machine.idle_ticks = 0;
            it.threads[0].ran_ns = second * 100_000_000;
            it.threads[0].waited_ns = (second as f64 * waited_part * 1e9) as u64;
        })
    };
    let starved = beside_a_neighbour(1.5);
    assert_eq!((starved.short_of, starved.processor.utilisation), (Shortage::Processor, 1.0));
    assert!((starved.processor.used - 0.1).abs() < 1e-6);
    let waits_for_a_database = beside_a_neighbour(0.2);
    assert_eq!(waits_for_a_database.short_of, Shortage::Nothing);
}

#[test]
fn a_word_stays_until_the_shortage_is_well_over() {
    let mut meter = Meter::default();
    let (mut idle_ticks, mut words) = (0, Vec::new());
    for second in 0..60u64 {
        let part_used = match second {
            0..20 => 0.95,
            20..40 => 0.85,
            _ => 0.5,
        };
        idle_ticks += ((1.0 - part_used) * 200.0) as u64;
        let mut reading = calm(second);
        reading.machine.idle_ticks = idle_ticks;
        reading.threads.clear();
        words.extend(meter.report(Instant::from_secs(second), reading).map(|report| report.short_of));
    }
    assert_eq!(
        (words[15], words[35], words[58]),
        (Shortage::Processor, Shortage::Processor, Shortage::Nothing)
    );
    assert_eq!(words.windows(2).filter(|pair| pair[0] != pair[1]).count(), 1);
}

#[test]
fn accounts_that_went_back_or_stood_still_are_no_report() {
    let mut meter = Meter::default();
    assert_eq!(meter.report(Instant::from_secs(1), calm(100)), None, "the first");
    assert!(meter.report(Instant::from_secs(2), calm(101)).is_some());
    assert_eq!(meter.report(Instant::from_secs(2), calm(102)), None, "no time");
    assert_eq!(meter.report(Instant::from_secs(3), calm(5)), None, "another machine");
    assert!(meter.report(Instant::from_secs(4), calm(6)).is_some());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// For any accounts, parts are parts.
    #[test]
    fn reports_are_finite_and_parts_are_within_bounds(
        totals in proptest::collection::vec((any::<u32>(), any::<u32>(), any::<u32>(), 0u64..40), 2..20),
    ) {
        let (mut meter, mut now) = (Meter::default(), Instant::ZERO);
        for (one, two, three, seconds) in totals {
            now += Duration::from_secs(seconds);
            let reading = Reading {
                machine: MachineCpu { processors: one % 5, idle_ticks: two.into() },
                group: (three % 2 == 0).then_some(GroupCpu { usage_us: one.into(), throttled_us: two.into() }),
                quota: (one % 2 == 0).then_some(f64::from(two % 7) + 0.5),
                threads: vec![ThreadTime { id: three % 3, ran_ns: one.into(), waited_ns: two.into() }],
                memory: Some((one.into(), two.into())),
                disk_pressure: Some(Pressure { some_us: three.into(), full_us: one.into() }),
                ..Reading::default()
            };
            let Some(report) = meter.report(now, reading) else { continue };
            let cpu = report.processor;
            let parts = [cpu.utilisation, cpu.throttled, cpu.busiest_thread.unwrap_or(0.0), report.disk.pressure.unwrap_or(0.0),
                report.memory.utilisation.unwrap_or(0.0)];
            prop_assert!(parts.iter().all(|part| (0.0..=1.0).contains(part)), "{:?}", report);
            prop_assert!(cpu.used.is_finite() && cpu.run_queue.unwrap_or(0.0) >= 0.0);
        }
    }
}
