//! A request that is written once and sent many times, with another number each time.

use memchr::memmem;

/// Stands for the number in a prepared request; as long as the number is.
pub const NUMBER: &str = "############";
const DIGITS: usize = NUMBER.len();

#[derive(Debug, Clone)]
pub struct Request {
    bytes: Vec<u8>,
    places: Vec<usize>,
}

impl Request {
    pub fn new(bytes: Vec<u8>) -> Self {
        let places = memmem::find_iter(&bytes, NUMBER).collect();
        Self { bytes, places }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes with this number in them.
    pub fn numbered(&mut self, number: u64) -> &[u8] {
        let digits = digits(number);
        for place in &self.places {
            self.bytes[*place..place + DIGITS].copy_from_slice(&digits);
        }
        &self.bytes
    }
}

pub fn digits(mut number: u64) -> [u8; DIGITS] {
    let mut digits = [b'0'; DIGITS];
    for digit in digits.iter_mut().rev() {
        *digit += (number % 10) as u8;
        number /= 10;
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_gets_the_number() {
        let mut request = Request::new(format!("a {NUMBER} b {NUMBER}").into_bytes());
        for (number, expected) in [(7, "a 000000000007 b 000000000007"), (120, "a 000000000120 b 000000000120")] {
            assert_eq!(request.numbered(number), expected.as_bytes());
        }
    }
}
