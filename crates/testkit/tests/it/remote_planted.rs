//! Every planted fault breaks its rule and no other.

use std::collections::HashSet;

use sabir_testkit::remote::{PlantedFault, RemoteAgent, RemoteProtocol};

use crate::calls::Caller;
use crate::rules::holds;

fn check(protocol: RemoteProtocol) {
    let faults = || PlantedFault::ALL.iter().copied().filter(|fault| fault.applies_to(protocol));
    let honest = RemoteAgent::builder(protocol).offering_push().start();
    for rule in faults() {
        assert_eq!(holds(rule, &Caller::of(&honest, protocol)), Some(true), "{protocol:?}, honest: {}", rule.about());
    }
    for fault in faults() {
        let agent = RemoteAgent::planted(protocol, fault);
        let caller = Caller::of(&agent, protocol);
        for rule in faults() {
            let (name, about) = (fault.name(), rule.about());
            match holds(rule, &caller) {
                seen if rule == fault => assert_eq!(seen, Some(false), "{protocol:?}, {name}: {about}"),
                seen => assert_ne!(seen, Some(false), "{protocol:?}, {name} is not alone: {about}"),
            }
        }
    }
}

#[test]
fn planted_in_1_0_over_json_rpc() {
    check(RemoteProtocol::V1JsonRpc);
}

#[test]
fn planted_in_1_0_over_http_json() {
    check(RemoteProtocol::V1HttpJson);
}

#[test]
fn planted_in_0_3_over_json_rpc() {
    check(RemoteProtocol::V03JsonRpc);
}

#[test]
fn planted_faults_are_found_by_name() {
    let names: HashSet<&str> = PlantedFault::ALL.iter().map(|fault| fault.name()).collect();
    assert_eq!(names.len(), PlantedFault::ALL.len());
    for fault in PlantedFault::ALL {
        assert_eq!(PlantedFault::named(fault.name()), Some(*fault));
        assert!(!fault.protocols().is_empty() && fault.sections().contains('§') && fault.about().ends_with('.'));
    }
}
