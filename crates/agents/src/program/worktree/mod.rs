//! A git worktree for one task, and what was changed in it.
//!
//! The tree is removed when the turn is over. Its content stays in the repository under `refs/sabir/AGENT/NAME/work`, so
//! that the next turn of the task continues from there and people can look at it (`git diff refs/sabir/AGENT/NAME/base
//! refs/sabir/AGENT/NAME/work`). NAME is the task's id and a hash of owner, agent and id, since ids repeat.
//!
//! A separate tokio task keeps the content. The caller of the diff may be gone, and a turn may be dropped at any point: the
//! content is kept anyway, after the program has ended. If the server is killed meanwhile, the next one finds the tree and
//! its record. A tree is removed only after its content is kept.
//!
//! | in the folder of worktrees | what it is                                                              |
//! |----------------------------|-------------------------------------------------------------------------|
//! | `NAME`                     | the tree                                                                |
//! | `NAME.json`                | the record: there from before the tree is made until after it is gone   |
//! | `NAME.git`                 | git's directory while Sabir runs git (`OwnGitDir`)                      |

mod git_data;
mod keep;
mod open;
mod repository;
mod tree;

pub use open::{TaskName, Worktree};
pub(super) use tree::{Record, Tree};
