// The values of the wire as far as the page reads them, for the type checker. No code.

/**
 * @typedef {{type: string, data: any}} Part
 * @typedef {{id: string, role: 'user'|'assistant'|'tool'|'system', session_id: string, parts: Part[], model: string,
 *   provider: string, created_at: number, updated_at: number, is_summary_message?: boolean, run_id?: string}} Message
 * @typedef {{message_id: string, session_id: string, run_id: string, part: number,
 *   kind: 'text'|'reasoning'|'tool_input', offset: number, delta: string}} MessageDelta
 * @typedef {{session_id: string, run_id: string, message_id: string, tool_call_id: string, offset: number,
 *   delta: string, dropped?: number}} ToolOutput
 * @typedef {{id: string, title: string, parent_session_id: string, message_count: number, prompt_tokens: number,
 *   completion_tokens: number, summary_message_id: string, cost: number, created_at: number, updated_at: number,
 *   todos?: any[], model?: string, forked_from?: string, archived_at?: number, mode?: string}} Session
 * @typedef {{run_id: string, session_id: string, seq: number, state: string, mode: string, prompt: string,
 *   accepted_at: number, started_at?: number, ended_at?: number, waiting_on?: string, error?: string,
 *   cancelled_by?: string, folded_into?: string, place?: number, parked_by?: string, posted_by?: string,
 *   cancelled_by_client?: string, options?: any, text?: string}} Run
 * @typedef {{id: string, session_id: string, run_id?: string, tool_call_id: string, tool_name: string,
 *   description: string, action: string, params: any, path: string, reason?: string, rules?: string[],
 *   prefix_rules?: string[], network?: boolean, asks_for?: string, sandbox?: string, confined?: boolean, questions?: any[]}} AskRequest
 * @typedef {{client_id: string, session_id: string, name: string|null, kind: string|null}} PresentClient
 * @typedef {{session_id?: string, prompt?: string, run_id: string, attachments?: any[], mode?: string}} PostPrompt
 * @typedef {{command: string, load?: number, session_id?: string, before?: string, run_id?: string}} Command
 * @typedef {{type: string, payload: {type: string, payload: any}}} Envelope
 */
export {};
