//! Limiters before simulated origins: calm services are left alone, and a crowd gets most of what the origin
//! can do.
//!
//! The origin shares `servers` among the requests that work; a request waits first, using no server. A queue
//! before the limiter gives room to the newest first and drops requests after .4 of the target.

use crate::{Limiter, Permit};
use std::time::Duration;

#[derive(Clone, Copy)]
struct Class {
    rate: [f64; 2],
    wait_s: f64,
    work_s: f64,
    is_exponential: bool,
}

struct Case {
    servers: f64,
    servers_later: f64,
    classes: Vec<Class>,
    /// The first requests of the first class from second 20 on, and for how long each of them waits: the
    /// origin starts again.
    cold: (u64, f64),
    /// Time at which rates change, and end of the run, seconds.
    change_s: f64,
    end_s: f64,
    fixed: Option<u32>,
}

#[derive(Debug, Default)]
struct Outcome {
    offered: u64,
    refused: u64,
    refused_by_class: Vec<u64>,
    in_time: u64,
    limit: u32,
}

struct Rng(u64);

impl Rng {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let bits = (self.0 ^ (self.0 >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * self.unit().ln()
    }
}

struct Request {
    class: usize,
    arrived: f64,
    waits_until: f64,
    left_s: f64,
    permit: Option<Permit>,
}

const TARGET_S: f64 = 1.0;
const STEP_S: f64 = 0.001;

fn at(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn run(case: &Case, seed: u64) -> Outcome {
    let mut rng = Rng(seed);
    let mut limiter = Limiter::new(at(TARGET_S));
    let mut outcome = Outcome { refused_by_class: vec![0; case.classes.len()], ..Outcome::default() };
    let mut next: Vec<f64> = case.classes.iter().map(|class| rng.exponential(1.0 / class.rate[0])).collect();
    let (mut wants_more, mut cold) = (case.fixed.is_none(), case.cold.0);
    // Classes whose last request met the limit: queued requests try again when one completes, and after each
    // plan.
    let mut is_full = vec![false; case.classes.len()];
    let (mut queue, mut active): (Vec<(usize, f64)>, Vec<Request>) = (Vec::new(), Vec::new());
    for step in 0..(case.end_s / STEP_S) as u64 {
        let now = step as f64 * STEP_S;
        for (class, model) in case.classes.iter().enumerate() {
            while next[class] <= now {
                queue.push((class, next[class]));
                outcome.offered += 1;
                let rate = model.rate[usize::from(now >= case.change_s)];
                next[class] += rng.exponential(1.0 / rate);
            }
        }
        let working = active.iter().filter(|request| request.waits_until <= now).count() as f64;
        let servers = if now < 20.0 { case.servers } else { case.servers_later };
        let speed = (servers / working.max(1.0)).min(1.0);
        let mut index = 0;
        while index < active.len() {
            let request = &mut active[index];
            if request.waits_until <= now {
                request.left_s -= speed * STEP_S;
            }
            if request.waits_until <= now && request.left_s <= 0.0 {
                let request = active.swap_remove(index);
                if let Some(permit) = request.permit {
                    permit.complete(&mut limiter, at(now));
                }
                is_full.fill(false);
                outcome.in_time += u64::from(request.class == 0 && now - request.arrived <= TARGET_S);
            } else {
                index += 1;
            }
        }
        queue.retain(|&(class, arrived)| {
            let patience = if wants_more { 4.0 } else { 0.4 };
            let is_kept = now - arrived <= patience * TARGET_S;
            outcome.refused += u64::from(!is_kept);
            outcome.refused_by_class[class] += u64::from(!is_kept);
            is_kept
        });
        for index in (0..queue.len()).rev() {
            let (class, arrived) = queue[index];
            let permit = match case.fixed {
                Some(limit) if active.len() >= limit as usize => break,
                Some(_) => None,
                None if is_full[class] => continue,
                // There may be room for a request of another class.
                None => match limiter.try_acquire(class as u32, at(now)) {
                    Ok(permit) => Some(permit),
                    Err(_) => {
                        is_full[class] = true;
                        continue;
                    }
                },
            };
            queue.remove(index);
            let model = case.classes[class];
            let work_s = if model.is_exponential { rng.exponential(model.work_s) } else { model.work_s };
            let is_cold = class == 0 && now >= 20.0 && cold > 0;
            cold -= u64::from(is_cold);
            let wait_s = if is_cold { case.cold.1 } else { model.wait_s };
            let waits_until = now + wait_s * (0.9 + 0.2 * rng.unit());
            active.push(Request { class, arrived, waits_until, left_s: work_s, permit });
        }
        if step % 20 == 0 && case.fixed.is_none() {
            let learned = limiter.plan(at(now));
            is_full.fill(false);
            (outcome.limit, wants_more) = (learned.limit, learned.wants_more);
        }
    }
    outcome
}

fn class(rate: f64, crowd: f64, wait_s: f64, work_s: f64) -> Class {
    Class { rate: [rate, crowd], wait_s, work_s, is_exponential: false }
}

fn calm(name: &str, classes: Vec<Class>, change_s: f64, refused_max: u64) {
    restarting(name, classes, (0, 0.0), change_s, refused_max);
}

fn restarting(name: &str, classes: Vec<Class>, cold: (u64, f64), change_s: f64, refused_max: u64) {
    let (servers, servers_later) = (1_000.0, 1_000.0);
    let outcome = run(&Case { servers, servers_later, classes, cold, change_s, end_s: 50.0, fixed: None }, 7);
    println!("{name}: {outcome:?}");
    assert!(outcome.refused <= refused_max, "{name}: {outcome:?}");
}

#[test]
fn polls_beside_pages() {
    calm("polls 20 s", vec![class(30.0, 30.0, 0.0, 0.01), class(2.0, 2.0, 20.0, 0.0)], 99.0, 0);
}

#[test]
fn polls_beside_more_pages() {
    calm("polls, pages to 150", vec![class(30.0, 150.0, 0.0, 0.01), class(2.0, 2.0, 20.0, 0.0)], 25.0, 0);
}

#[test]
fn waits_of_six_seconds() {
    calm("6 s", vec![class(30.0, 30.0, 0.0, 0.01), class(2.0, 2.0, 6.0, 0.0)], 99.0, 0);
}

#[test]
fn waits_of_three_seconds() {
    calm("3 s", vec![class(30.0, 30.0, 0.0, 0.01), class(2.0, 2.0, 3.0, 0.0)], 99.0, 0);
}

#[test]
fn exports() {
    calm("exports", vec![class(30.0, 30.0, 0.0, 0.01), class(0.5, 0.5, 5.0, 0.0)], 99.0, 0);
}

#[test]
fn all_wait_800_ms() {
    calm("all 800 ms", vec![class(20.0, 60.0, 0.8, 0.0)], 25.0, 0);
}

#[test]
fn all_wait_two_seconds() {
    calm("all 2 s", vec![class(10.0, 10.0, 2.0, 0.0)], 99.0, 5);
}

#[test]
fn all_wait_five_seconds() {
    calm("all 5 s", vec![class(3.0, 3.0, 5.0, 0.0)], 99.0, 5);
}

/// Eight places and two seconds for each of forty requests; the limit rises as they complete. Those refused
/// came meanwhile.
#[test]
fn an_origin_that_starts_again_is_slow_for_seconds() {
    restarting("restart", vec![class(40.0, 40.0, 0.01, 0.0)], (40, 2.0), 99.0, 280);
}

/// The other URL needs nothing of what the slow one waits for; the first tenths of a second are those in
/// which nothing is known.
#[test]
fn one_slow_url_does_not_keep_the_others_out() {
    let classes = vec![class(40.0, 40.0, 0.05, 0.0), class(40.0, 40.0, 0.05, 0.0)];
    let (servers, servers_later, cold) = (1_000.0, 1_000.0, (800, 3.0));
    let case = Case { servers, servers_later, classes, cold, change_s: 99.0, end_s: 50.0, fixed: None };
    for seed in 1..=4 {
        let outcome = run(&case, seed);
        println!("one slow URL: {outcome:?}");
        assert!(outcome.refused_by_class[1] <= 2, "seed {seed}: {outcome:?}");
    }
}

/// Share of the best fixed limit's answers in time.
fn crowd(name: &str, servers: f64, classes: Vec<Class>, change_s: f64, least: f64) {
    changing(name, servers, servers, classes, change_s, least);
}

fn changing(name: &str, servers: f64, servers_later: f64, classes: Vec<Class>, change_s: f64, least: f64) {
    let (cold, end_s) = ((0, 0.0), 40.0);
    let case =
        |fixed| Case { servers, servers_later, classes: classes.clone(), cold, change_s, end_s, fixed };
    let best = [1, 2, 4, 6, 8, 12, 16, 24, 48, 96].map(|limit| run(&case(Some(limit)), 7).in_time);
    let best = best.into_iter().max().expect("a limit");
    let ours = run(&case(None), 7);
    let share = ours.in_time as f64 / best as f64;
    println!("{name}: {share:.3} of {best} {ours:?}");
    assert!(share >= least, "{name}: {share}");
}

#[test]
fn a_crowd_before_two_servers() {
    let page = Class { is_exponential: true, ..class(50.0, 900.0, 0.0, 0.01) };
    crowd("crowd", 2.0, vec![page], 10.0, 0.95);
}

#[test]
fn polls_beside_a_crowd() {
    let page = Class { is_exponential: true, ..class(50.0, 900.0, 0.0, 0.01) };
    crowd("polls and crowd", 2.0, vec![page, class(2.0, 2.0, 20.0, 0.0)], 10.0, 0.95);
}

#[test]
fn a_cold_start_of_one_slow_server() {
    crowd("cold 1", 1.0, vec![class(6.0, 6.0, 0.0, 0.5)], 0.0, 0.4);
}

#[test]
fn a_cold_start_of_four_slow_servers() {
    crowd("cold 4", 4.0, vec![class(24.0, 24.0, 0.0, 0.5)], 0.0, 0.8);
}

#[test]
fn three_times_the_servers() {
    changing("more", 1.0, 3.0, vec![class(5.0, 100.0, 0.0, 0.1)], 10.0, 0.8);
}

#[test]
fn a_third_of_the_servers() {
    changing("fewer", 6.0, 2.0, vec![class(30.0, 200.0, 0.0, 0.1)], 10.0, 0.8);
}
