import type { PluginEntry } from '../../config/plugin-entries.ts';
import { infoFromManifest } from '../loading/manifest.ts';
import type { PluginInfo } from './messages.ts';
import { PluginThread, type PluginThreadDeps } from './plugin-thread.ts';

/** A plugin whose hooks run in a thread of its own. */
export interface ThreadPlugin {
  readonly name: string;
  readonly info: PluginInfo;
  readonly thread: PluginThread;
  /** Ends the thread for good. */
  readonly close: () => Promise<void>;
}

/** Dependencies of `loadInThread`. */
export interface ThreadPluginDeps extends PluginThreadDeps {
  /** How often the plugin is loaded until it counts as failed; once if absent. */
  readonly attempts?: number;
  /** Called with each failure but the last, and the number of the attempt from 1. */
  readonly onFailedAttempt?: (error: unknown, attempt: number) => void;
}

/**
 * Loads the plugin of an entry in a thread. One with a manifest is loaded with its first run. Rejects with
 * `PluginError`, and then the thread has ended.
 */
export async function loadInThread(
  entry: PluginEntry,
  { attempts = 1, onFailedAttempt, ...deps }: ThreadPluginDeps,
): Promise<ThreadPlugin> {
  const thread = new PluginThread(entry, deps);
  const close = (): Promise<void> => thread.stop();
  for (let attempt = 1; ; attempt++) {
    try {
      const info = infoFromManifest(entry) ?? (await thread.start());
      return { name: info.name, info, thread, close };
    } catch (error) {
      if (attempt >= attempts) {
        await close();
        throw error;
      }
      onFailedAttempt?.(error, attempt);
    }
  }
}
