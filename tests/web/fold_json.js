// A view as JSON, as docs/VIEW_STATE.md describes it: for tests and for looking at, not for drawing.

import { metersOf, outputText } from '../../src/covey/web/js/fold.js';

const OF_SESSION = /** @type {const} */ ([
  'id', 'title', 'parent_session_id', 'forked_from', 'model', 'mode', 'summary_message_id', 'message_count', 'cost',
  'created_at', 'archived_at',
]);

/** @param {import('../../src/covey/web/js/fold.js').View} view */
export function viewAsJson(view) {
  const shown = view.sessions.records.get(view.current);
  const session = shown?.session;
  return {
    link: { ...view.link },
    loading: [...view.loads.open.keys()].sort(),
    skips_permissions: view.skipsPermissions,
    sessions: sessions(view),
    current: view.current,
    messages: view.messages.list(),
    has_older: view.hasOlder,
    runs: [...(shown?.runs.values() ?? [])].sort((a, b) => a.run.seq - b.run.seq).map(run),
    queue: shown ? shown.queue.map((each) => each.run_id) : [],
    todos: session?.todos ?? [],
    meters: metersOf(view),
    asks: [...view.asks.open.values()].map((ask) => (
      { kind: ask.kind, request: ask.request, is_being_answered: ask.isBeingAnswered })),
    closed_asks: [...view.asks.closed.entries()].map(([id, { outcome, by }]) => ({ id, outcome, by })),
    outputs: [...view.outputs.values()].map((each) => ({
      tool_call_id: each.tool_call_id, start: each.start, end: each.start + each.data.length, text: outputText(each),
    })),
    outbox: [...view.outbox.prompts.entries()].map(([run_id, { prompt, givenAt, state, error }]) => (
      { run_id, session_id: prompt.session_id, prompt: prompt.prompt ?? '', given_at: givenAt, state, error })),
    cancels: [...view.outbox.cancels.values()].map((each) => ({
      session_id: each.session_id, run_id: each.run_id, asked_at: each.askedAt,
      covered: each.covered && [...each.covered.keys()],
    })),
    clients: [...view.clients.values()],
  };
}

/** @param {import('../../src/covey/web/js/fold.js').View} view */
function sessions(view) {
  const known = [...view.sessions.records.values()].filter((record) => record.session);
  const key = (/** @type {any} */ record) => record.session;
  known.sort((a, b) => key(b).created_at - key(a).created_at || (key(b).id > key(a).id ? 1 : -1));
  return known.map((record) => {
    const session = /** @type {any} */ (record.session);
    return {
      ...Object.fromEntries(OF_SESSION.map((name) => [name, session[name] ?? null])),
      is_busy: record.isBusy, is_unread: record.isUnread, has_failed: record.hasFailed,
      waits_for_you: view.asks.waitsIn(session.id),
    };
  });
}

/** @param {import('../../src/covey/web/js/records.js').RunRecord} record */
function run({ run: value, retry, key_refused }) {
  return { run: value, retry: retry && { attempt: retry.attempt ?? null, retry_at: retry.retry_at ?? null }, key_refused };
}
