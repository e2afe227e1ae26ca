// Waiting for a task that works on without us, by asking again. The time limit of the case ends it.

import { setTimeout as sleep } from 'node:timers/promises';

/** The task once it is finished, whichever way. */
export async function finished(client, id) {
  for (;;) {
    const task = await client.get(id);
    if (['completed', 'failed', 'rejected', 'canceled'].includes(task.state)) {
      return task;
    }
    await sleep(100);
  }
}
