//! The candidates of every bar: the same for every run, machine and library.
//!
//! Texts of 200 to 4000 bytes, uniform; 1 to 5 of 50 tags; 5 kinds; 98 % with a timestamp, all of
//! them different; 70 % with a priority of 0 to 99; 5 % copies of an earlier text; 20 to 1500
//! tokens that follow the length; one pinned candidate below a hundred, else two.

use std::sync::OnceLock;

/// The pseudo-random generator `SplitMix64` (Steele, Lea and Flood 2014), with random access by index.
pub(crate) struct Random(u64);

impl Random {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a separate sequence per seed and index.
    fn at(seed: u64, index: usize) -> Self {
        let start = Self(seed.wrapping_add((index as u64).wrapping_mul(Self::STEP))).next();
        Self(start)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(Self::STEP);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a uniform number below `bound` (Lemire 2019).
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let product = u128::from(self.next()) * bound as u128;
        usize::try_from(product >> 64).unwrap_or(0)
    }

    /// Returns a uniform number from `low` to `high`.
    pub(crate) fn within(&mut self, low: i64, high: i64) -> i64 {
        let span = usize::try_from(high - low + 1).unwrap_or(1);
        low + i64::try_from(self.below(span)).unwrap_or(0)
    }

    /// Returns a uniform number in `[0, 1)`.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a permutation of the first `count` numbers (Fisher-Yates shuffle).
    pub(crate) fn permutation(&mut self, count: usize) -> Vec<u32> {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let mut order: Vec<u32> = (0..count).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, self.below(last + 1));
        }
        order
    }
}

/// The clock of the decay scorer.
pub(crate) const NOW_MILLISECONDS: i64 = 1_760_000_000_000;
const THIRTY_DAYS: i64 = 30 * 24 * 3_600 * 1_000;

pub(crate) const KINDS: usize = 5;
pub(crate) const TAGS: usize = 50;

/// One candidate, independent of the library.
pub(crate) struct Candidate {
    pub(crate) index: usize,
    pub(crate) content: String,
    pub(crate) tokens: i64,
    pub(crate) kind: usize,
    pub(crate) tags: Vec<usize>,
    pub(crate) timestamp_milliseconds: Option<i64>,
    pub(crate) priority: Option<i64>,
    pub(crate) pinned: bool,
}

/// A number of candidates. Only the order of the timestamps is stored, so the same population can be
/// built for two libraries one after the other.
pub(crate) struct Population {
    seed: u64,
    count: usize,
    text: Text,
    age_rank: Vec<u32>,
}

/// The length of the texts.
#[derive(Clone, Copy)]
enum Text {
    /// As described above, times the factor; the tokens do not grow with it.
    Varied {
        factor: usize,
    },
    Fixed {
        bytes: usize,
    },
}

impl Population {
    pub(crate) fn new(count: usize) -> Self {
        Self::with_text(count, Text::Varied { factor: 1 })
    }

    /// Returns the same candidates with texts that are longer by a factor.
    pub(crate) fn stretched(count: usize, factor: usize) -> Self {
        Self::with_text(count, Text::Varied { factor })
    }

    /// Returns the same candidates with texts of one length.
    pub(crate) fn of_length(count: usize, bytes: usize) -> Self {
        Self::with_text(count, Text::Fixed { bytes })
    }

    fn with_text(count: usize, text: Text) -> Self {
        let seed = 0xc09e_1000 + count as u64;
        Self {
            seed,
            count,
            text,
            age_rank: Random::new(!seed).permutation(count),
        }
    }

    pub(crate) fn candidates(&self) -> impl ExactSizeIterator<Item = Candidate> + '_ {
        (0..self.count).map(|index| self.candidate(index))
    }

    pub(crate) fn has_timestamp(&self, index: usize) -> bool {
        self.candidate_without_text(index)
            .timestamp_milliseconds
            .is_some()
    }

    /// Returns how many candidates deduplication drops: all but one of each text, except pinned ones.
    pub(crate) fn copies(&self) -> usize {
        let is_scored = |index: &usize| !self.candidate_without_text(*index).pinned;
        let scored: Vec<usize> = (0..self.count).filter(is_scored).collect();
        let mut texts: Vec<usize> = scored.iter().map(|&index| self.origin(index)).collect();
        texts.sort_unstable();
        texts.dedup();
        scored.len() - texts.len()
    }

    fn candidate(&self, index: usize) -> Candidate {
        let mut candidate = self.candidate_without_text(index);
        candidate.content = self.text_of(self.origin(index));
        candidate
    }

    fn candidate_without_text(&self, index: usize) -> Candidate {
        let mut random = Random::at(self.seed, index);
        let mut tags: Vec<usize> = Vec::new();
        let wanted = 1 + random.below(5);
        while tags.len() < wanted {
            let tag = random.below(TAGS);
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        let slot = THIRTY_DAYS / i64::try_from(self.count).unwrap_or(1);
        let age = i64::from(self.age_rank[index]) * slot + random.within(0, slot - 1);
        Candidate {
            index,
            content: String::new(),
            tokens: self.tokens_of(self.origin(index)),
            kind: random.below(KINDS),
            tags,
            timestamp_milliseconds: (random.below(100) < 98).then_some(NOW_MILLISECONDS - age),
            priority: (random.below(100) < 70).then(|| random.within(0, 99)),
            pinned: index == self.count / 3 || (self.count >= 100 && index == self.count / 3 * 2),
        }
    }

    /// Returns the candidate whose text this one has: itself, or an earlier one for every twentieth.
    fn origin(&self, index: usize) -> usize {
        let mut random = Random::at(self.seed ^ 0x0c09_1e50, index);
        if index > 0 && random.below(100) < 5 {
            self.origin(random.below(index))
        } else {
            index
        }
    }

    fn length_of(&self, origin: usize) -> usize {
        200 + Random::at(self.seed ^ 0x1e49_7400, origin).below(3_801)
    }

    fn tokens_of(&self, origin: usize) -> i64 {
        let length = self.length_of(origin) - 200;
        let mut random = Random::at(self.seed ^ 0x70ce_2500, origin);
        let by_length = i64::try_from(20 + length * 1_480 / 3_800).unwrap_or(20);
        (by_length * random.within(85, 115) / 100).clamp(20, 1_500)
    }

    /// Returns a unique heading, then an excerpt of one long text.
    fn text_of(&self, origin: usize) -> String {
        let length = match self.text {
            Text::Varied { factor } => self.length_of(origin) * factor,
            Text::Fixed { bytes } => bytes,
        };
        let mut random = Random::at(self.seed ^ 0x7e87_0000, origin);
        let prose = prose();
        let mut text = format!("{:08x} ", origin ^ 0x5a5a_0000);
        text.reserve_exact(length.saturating_sub(text.len()));
        while text.len() < length {
            let from = random.below(prose.len() - 4_000);
            let piece = (length - text.len()).min(4_000);
            text.push_str(&prose[from..from + piece]);
        }
        text.truncate(length);
        text
    }
}

/// Returns about 256 KB of sentences. Three words in four are common; the others are composed of parts,
/// so that the vocabulary is as large as in prose and a tokenizer takes as long.
fn prose() -> &'static str {
    const COMMON: &str = "the of and to in a is that for it as was with be by on not he his but at \
        are this have from or had an they which one you were her all she there would their we him \
        been has when who will more no if out so said what up its about into than them can only \
        other new some could time these two may then do first any my now such like our over man me \
        even most made after also did many before must through back years where much your way well \
        down should because each just those people how too little state good very make world still \
        own see men work long get here between both life being under never day same another know \
        while last might us great old year off come since against go came right used take three";
    const STEMS: &str = "act add age aim air arm art back band bank bar base bear beat bill bind bird \
        block blood board boat body bond book box brain brand break bridge bright broad build burn \
        call camp card care case cast catch cause change charge check chief child claim class clean \
        clear climb clock close cloud coach coast code cold collect color command common connect \
        control cook copy count cover craft cross crowd current cut dance dark data deal deep \
        deliver demand depend design direct divide doctor draw dream dress drive earth east edge \
        effect element energy engine event exact express face fact fail farm fast father field fight \
        figure film final find fine fire fish flow focus follow force form forward frame free friend \
        front garden gather general give glass gold govern grand green ground group grow guard guess \
        hand hard head hear heart heavy help high hold home horse hour house human ice image import \
        index inform island join judge jump keep kind king land large late lead learn leave letter \
        level light line list load local lock logic machine major manage map march mark market match \
        matter measure member metal method middle mind minute mix model money month motor move music \
        name nation nature note number object ocean office open order organ paint paper part pass \
        path pattern picture plan plant play point power practice present press print produce \
        program public question quick rain range rate reason record region report rest ring river \
        road rock rule sail salt scale school science season second section sense serve shape share \
        sharp ship short show sign silver single sleep slow small snow social soft sound south space \
        speak speed spend spring square stand star start station steam step stone stop store story \
        stream street strong student study summer sun supply support surface system table talk teach \
        team test thing think thread throw ticket token touch trade train travel tree trust turn type \
        unit value view visit voice wall wash watch water wave weather west wheel white wide wild win \
        wind window winter wire wish wonder wood word write yellow young";
    const PREFIXES: [&str; 12] = [
        "", "", "", "", "un", "re", "over", "under", "out", "inter", "mis", "Non",
    ];
    const SUFFIXES: [&str; 14] = [
        "", "", "s", "ed", "ing", "er", "ly", "ness", "able", "less", "ful", "ment", "-based", "'s",
    ];
    static PROSE: OnceLock<String> = OnceLock::new();
    PROSE.get_or_init(|| {
        let common: Vec<&str> = COMMON.split_whitespace().collect();
        let stems: Vec<&str> = STEMS.split_whitespace().collect();
        let mut random = Random::new(0x0009_053e);
        let mut prose = String::with_capacity(270_000);
        while prose.len() < 262_144 {
            for position in 0..6 + random.below(12) {
                prose.push_str(if position == 0 { "" } else { " " });
                if random.below(4) < 3 {
                    prose.push_str(common[random.below(common.len())]);
                } else {
                    prose.push_str(PREFIXES[random.below(PREFIXES.len())]);
                    prose.push_str(stems[random.below(stems.len())]);
                    prose.push_str(SUFFIXES[random.below(SUFFIXES.len())]);
                }
            }
            prose.push_str(if random.below(8) == 0 { ".\n" } else { ". " });
        }
        prose
    })
}
