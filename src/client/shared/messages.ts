/** From a tab to the leader: the tab that has the connection. `from` is the id of a shared socket. */
export type ToLeader =
  | { readonly type: 'open'; readonly from: string; readonly url: string; readonly protocols: string[] }
  | { readonly type: 'send'; readonly from: string; readonly text: string }
  | { readonly type: 'close'; readonly from: string }
  /** Asks for `here`. */
  | { readonly type: 'hello' };

/**
 * From the leader to all tabs, in order. `by` is the leader: a later one has a larger number.
 *
 * - `here`: the leader is there, and has got what was sent to it
 * - `welcome`: a socket is open at the position `seq`; `texts` are its welcome and the frames that it has missed
 * - `frame`: a frame for these sockets, or for all open ones (null); with a `seq` for those that are not there yet
 * - `close`: these sockets are closed
 */
export type FromLeader = { readonly by: number } & (
  | { readonly type: 'here' }
  | { readonly type: 'welcome'; readonly to: string; readonly seq: number; readonly texts: readonly string[] }
  | {
      readonly type: 'frame';
      readonly to: readonly string[] | null;
      readonly seq: number | null;
      readonly text: string;
    }
  | { readonly type: 'close'; readonly to: readonly string[]; readonly code: number; readonly reason: string }
);

/** The name of the lock that the tab of a socket holds for as long as the socket is open. */
export const lockOf = (name: string, socketId: string): string => `${name} ${socketId}`;
