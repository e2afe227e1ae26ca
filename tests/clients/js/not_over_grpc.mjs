// The groups of cases that the suite leaves out over gRPC, each with the reason. All others run through every binding.

const REASONS = {
  signing: 'a card is fetched with plain HTTP, whichever binding follows; the suites of the other bindings show it',
  retrying: "the SDK's fetch repeats what a 401 refused; over gRPC it has no such thing, and the card says what to show",
};

/** The groups that say something over gRPC; prints the others. */
export function overGrpc(groups) {
  const names = Object.keys(groups);
  for (const name of names.filter((each) => each in REASONS)) {
    console.log(`left out - ${name}: ${REASONS[name]}`);
  }
  return Object.fromEntries(Object.entries(groups).filter(([name]) => !(name in REASONS)));
}
