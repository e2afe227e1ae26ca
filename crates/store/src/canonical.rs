//! Values as one sequence of bytes, each with its length: what digests are made of, and what backups hold.
//!
//! Numbers have eight bytes, big-endian. A value that may be missing has a byte in front that says whether it is there.

use sabir_model::Seq;

use crate::damage::Damage;

pub(crate) struct CanonicalWriter(pub Vec<u8>);

impl CanonicalWriter {
    pub fn number(&mut self, number: i64) {
        self.0.extend_from_slice(&number.to_be_bytes());
    }

    pub fn option(&mut self, number: Option<i64>) {
        self.0.push(u8::from(number.is_some()));
        self.number(number.unwrap_or(0));
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as i64);
        self.0.extend_from_slice(bytes);
    }

    pub fn optional_bytes(&mut self, bytes: Option<&[u8]>) {
        self.0.push(u8::from(bytes.is_some()));
        self.bytes(bytes.unwrap_or_default());
    }

    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub fn packs(&mut self, packs: &[(Seq, Vec<u8>)]) {
        self.number(packs.len() as i64);
        for (last, body) in packs {
            self.number(*last as i64);
            self.bytes(body);
        }
    }
}

/// Reads what the writer has written, from the front.
pub(crate) struct CanonicalReader<'a>(pub &'a [u8]);

impl<'a> CanonicalReader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Damage> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(|| Damage("it is cut off".into()))?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn number(&mut self) -> Result<i64, Damage> {
        let bytes = self.take(8)?.try_into().expect("eight bytes were taken");
        Ok(i64::from_be_bytes(bytes))
    }

    pub fn unsigned(&mut self) -> Result<u64, Damage> {
        u64::try_from(self.number()?).map_err(|_| Damage("a number is negative".into()))
    }

    /// A count of attempts.
    pub fn small(&mut self) -> Result<u32, Damage> {
        u32::try_from(self.number()?).map_err(|_| Damage("a number is too large".into()))
    }

    pub fn flag(&mut self) -> Result<bool, Damage> {
        Ok(self.number()? != 0)
    }

    pub fn option(&mut self) -> Result<Option<i64>, Damage> {
        let is_there = self.take(1)? != [0];
        let number = self.number()?;
        Ok(is_there.then_some(number))
    }

    pub fn bytes(&mut self) -> Result<&'a [u8], Damage> {
        let length = self.unsigned()?;
        self.take(usize::try_from(length).unwrap_or(usize::MAX))
    }

    pub fn optional_bytes(&mut self) -> Result<Option<Vec<u8>>, Damage> {
        let is_there = self.take(1)? != [0];
        let bytes = self.bytes()?;
        Ok(is_there.then(|| bytes.to_vec()))
    }

    pub fn text(&mut self) -> Result<String, Damage> {
        let text = std::str::from_utf8(self.bytes()?).map_err(|_| Damage("a text is not UTF-8".into()))?;
        Ok(text.to_owned())
    }

    pub fn texts<const N: usize>(&mut self) -> Result<[String; N], Damage> {
        let mut texts = [const { String::new() }; N];
        for text in &mut texts {
            *text = self.text()?;
        }
        Ok(texts)
    }

    pub fn optional_text(&mut self) -> Result<Option<String>, Damage> {
        let bytes = self.optional_bytes()?;
        bytes.map(String::from_utf8).transpose().map_err(|_| Damage("a text is not UTF-8".into()))
    }

    pub fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Result<T, Damage>) -> Result<Vec<T>, Damage> {
        let mut list = Vec::new();
        for _ in 0..self.unsigned()? {
            list.push(read(self)?);
        }
        Ok(list)
    }

    pub fn packs(&mut self) -> Result<Vec<(Seq, Vec<u8>)>, Damage> {
        self.list(|input| Ok((input.unsigned()?, input.bytes()?.to_vec())))
    }

    pub fn end(&self) -> Result<(), Damage> {
        match self.0 {
            [] => Ok(()),
            _ => Err(Damage("something follows its end".into())),
        }
    }
}
