//! Property test: in any order of steps, no limit is exceeded and no run is forgotten.

use proptest::prelude::*;

use super::super::slots::Holding;
use super::*;

/// A step of a run. The numbers choose an agent and a context, or one of the existing runs.
#[derive(Debug, Clone)]
enum ScheduleStep {
    Enter { executor: usize, owner: usize, context: usize },
    Park(usize),
    ComeBack(usize),
    WaitForFolder(usize),
    Withdraw(usize),
    End(usize),
    LeaveQueue(usize),
}

fn step() -> impl Strategy<Value = ScheduleStep> {
    prop_oneof![
        4 => (0..2_usize, 0..3_usize, 0..6_usize)
            .prop_map(|(executor, owner, context)| ScheduleStep::Enter { executor, owner, context }),
        3 => any::<usize>().prop_map(ScheduleStep::Park),
        3 => any::<usize>().prop_map(ScheduleStep::ComeBack),
        1 => any::<usize>().prop_map(ScheduleStep::WaitForFolder),
        1 => any::<usize>().prop_map(ScheduleStep::Withdraw),
        2 => any::<usize>().prop_map(ScheduleStep::End),
        1 => any::<usize>().prop_map(ScheduleStep::LeaveQueue),
    ]
}

/// All runs of a test.
struct AllRuns {
    schedule: Arc<Schedule>,
    waiting: Vec<Queued<Permit>>,
    /// Permits, and the queue entry of those that want a slot again.
    running: Vec<(Permit, Option<Queued<()>>)>,
}

impl AllRuns {
    fn take(&mut self, step: ScheduleStep) {
        let (runs, queued) = (self.running.len().max(1), self.waiting.len().max(1));
        match step {
            ScheduleStep::Enter { executor, owner, context } => {
                let mut request = executed_by(executor, &format!("c{context}"));
                request.context.owner = Owner::new("org", &format!("o{owner}"));
                match self.schedule.enter(request) {
                    Scheduled::Now(permit) => self.running.push((permit, None)),
                    Scheduled::Later(queued) => self.waiting.push(queued),
                    Scheduled::QueueFull => {}
                }
            }
            ScheduleStep::Park(at) => {
                if let Some((permit, None)) = self.running.get(at % runs) {
                    permit.park();
                }
            }
            ScheduleStep::ComeBack(at) => {
                if let Some((permit, queued_slot @ None)) = self.running.get_mut(at % runs)
                    && let Reacquired::Later(queued) = permit.reacquire_slot()
                {
                    *queued_slot = Some(queued);
                }
            }
            ScheduleStep::WaitForFolder(at) => {
                if let Some((permit, None)) = self.running.get(at % runs) {
                    permit.release_slot();
                }
            }
            ScheduleStep::Withdraw(at) => {
                if let Some((permit, queued_slot)) = self.running.get_mut(at % runs) {
                    *queued_slot = None;
                    permit.reacquire_slot_at_once();
                }
            }
            ScheduleStep::End(at) => {
                drop((at % runs < self.running.len()).then(|| self.running.swap_remove(at % runs)))
            }
            ScheduleStep::LeaveQueue(at) => {
                drop((at % queued < self.waiting.len()).then(|| self.waiting.swap_remove(at % queued)));
            }
        }
        self.take_granted();
    }

    /// Takes the permits and slots that were granted.
    fn take_granted(&mut self) {
        for (permit, queued_slot) in &mut self.running {
            if queued_slot.as_mut().is_some_and(|queued_slot| queued_slot.granted.try_recv().is_ok()) {
                assert!(permit.has_slot());
                *queued_slot = None;
            }
        }
        for mut queued in std::mem::take(&mut self.waiting) {
            match queued.granted.try_recv() {
                Ok(permit) => self.running.push((permit, None)),
                Err(_) => self.waiting.push(queued),
            }
        }
    }

    fn check(&self, most: &[usize; 2]) {
        let state = lock(&self.schedule.state);
        for (agent, slots) in state.agents.iter().enumerate() {
            let of_agent = || self.running.iter().filter(|(permit, _)| permit.executor == agent);
            let with = |holding: Holding| of_agent().filter(|(permit, _)| permit.holding.get() == holding).count();
            assert_eq!(slots.running, with(Holding::Slot) + with(Holding::SlotWhileAsking), "slots are counted");
            assert_eq!(
                (slots.parked, slots.waiting_for_folders.total()),
                (with(Holding::Parked), with(Holding::WaitsForFolder))
            );
            assert!(slots.running <= slots.limit.max(most[agent]), "only those who cannot be held exceed the limit");
            assert!(slots.parked <= slots.max_parked);
            assert!(
                slots.parked == slots.max_parked || with(Holding::SlotWhileAsking) == 0,
                "who can be parked is parked"
            );
            let in_queue = || self.waiting.iter().filter(|queued| queued.executor == agent);
            assert_eq!(slots.waiting.total(), in_queue().count());
            for owner in (0..3).map(|owner| Owner::new("org", &format!("o{owner}"))) {
                let own = |context: &Option<ContextKey>| context.as_ref().is_some_and(|key| key.owner == owner);
                let waiting = in_queue().filter(|queued| own(&queued.context)).count();
                assert_eq!(slots.waiting.of(&owner), waiting, "waiting tasks are counted per owner");
                let for_folders = of_agent().filter(|(permit, _)| permit.holding.get() == Holding::WaitsForFolder);
                let for_folders = for_folders.filter(|(permit, _)| own(&permit.context)).count();
                assert_eq!(slots.waiting_for_folders.of(&owner), for_folders);
            }
            assert!(slots.waiting.total() <= 2 * slots.queue, "a full queue has few places for owners without one");
            let is_ready = |queued: &&Queued<Permit>| queued.wait.is_in(QueueStage::WaitsForSlot);
            let is_due =
                in_queue().any(|queued| is_ready(&queued)) || of_agent().any(|(_, queued_slot)| queued_slot.is_some());
            assert!(slots.running >= slots.limit || !is_due, "nobody waits while there is a slot");
        }
        for key in state.contexts.keys() {
            let runs = self.running.iter().filter(|(permit, _)| permit.context.as_ref() == Some(key)).count();
            let is_next = self
                .waiting
                .iter()
                .any(|queued| queued.context.as_ref() == Some(key) && queued.wait.is_in(QueueStage::WaitsForSlot));
            assert_eq!(runs + usize::from(is_next), 1, "a context has one run, or one that is next");
        }
        let contexts = self.running.iter().filter_map(|(permit, _)| permit.context.as_ref());
        assert!(contexts.into_iter().all(|context| state.contexts.contains_key(context)));
    }
}

proptest! {
    #[test]
    fn no_order_of_steps_exceeds_a_limit_or_forgets_anybody(
        steps in proptest::collection::vec(step(), 1..200),
        limits in (1..4_usize, 0..5_usize, 0..3_usize),
    ) {
        let schedule = schedule(&[limits, (1, 3, 1)]);
        let mut all = AllRuns { schedule: schedule.clone(), waiting: Vec::new(), running: Vec::new() };
        for step in steps {
            // A run that cannot be made to wait may exceed the limit until it ends.
            let before = || {
                let state = lock(&schedule.state);
                [0, 1].map(|agent| state.agents[agent].running)
            };
            let mut most = before();
            if let ScheduleStep::Withdraw(_) = step {
                most = most.map(|running| running + 1);
            }
            all.take(step);
            all.check(&most);
        }
        // All waiting runs are admitted when the others end.
        while !all.running.is_empty() {
            let left = all.running.len() + all.waiting.len();
            all.take(ScheduleStep::End(0));
            prop_assert!(all.running.len() + all.waiting.len() < left);
        }
        prop_assert!(all.waiting.is_empty());
        let state = lock(&schedule.state);
        prop_assert!(state.contexts.is_empty() && state.queued == 0);
        let left = state.agents.iter().map(|slots| {
            slots.running + slots.parked + slots.waiting.total() + slots.waiting_for_folders.total()
        });
        prop_assert_eq!(left.sum::<usize>(), 0);
    }
}
