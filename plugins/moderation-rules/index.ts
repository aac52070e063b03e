import { createHash } from 'node:crypto';
import {
  definePlugin,
  type DraftComment,
  type FilterContext,
  hold,
  type Hold,
  reject,
  type Rejection,
} from '../../src/plugins/api.ts';
import { erasedUserOf } from '../shared/erased-user.ts';
import { type Config, ConfigSchema, type Rule } from './config.ts';
import { ContentChecks } from './content.ts';
import { digestOf, History } from './history.ts';
import { ComparedText } from './normalise.ts';

const WRITER_PREFIX = 'writer/';

/** A rule with its check, which says why it applies; null if it does not. */
interface CompiledRule {
  readonly rule: Rule;
  readonly check: (draft: Draft) => string | null | Promise<string | null>;
}

interface Draft {
  readonly text: ComparedText;
  /** Identifies its words. */
  readonly digest: () => string;
  /** Identifies the author among all environments. */
  readonly user: string;
  readonly now: number;
  /** Whether it is an edit, which is not counted. */
  readonly isEdit: boolean;
  readonly hasWritten: () => Promise<boolean>;
}

/** Holds or rejects comments and threads by rules (docs/moderation.md). */
export default definePlugin({
  name: 'moderation-rules',
  version: '1.0.0',
  apiVersion: 1,
  config: ConfigSchema,
  setup(host) {
    const history = new History();
    // A configuration is the same object for as long as it does not change.
    const compiled = new WeakMap<Config, readonly CompiledRule[]>();
    const rulesOf = (config: Config): readonly CompiledRule[] => {
      const known = compiled.get(config);
      if (known !== undefined) return known;
      const checks = new ContentChecks();
      const rules = config.rules.map((rule, number) => ({ rule, check: checkOf(rule, number, checks, history) }));
      compiled.set(config, rules);
      return rules;
    };
    const decide = async (
      comment: DraftComment,
      { actor, config, environment }: FilterContext<Config>,
      isEdit: boolean,
    ): Promise<Hold | Rejection | undefined> => {
      if (config.exemptBackends && actor.kind === 'backend') return undefined;
      if (config.exemptModerators && actor.role === 'moderator') return undefined;
      const text = new ComparedText(comment.body);
      const draft: Draft = {
        text,
        digest: once(() => digestOf(text.words)),
        user: `${environment.id} ${comment.userId}`,
        now: host.now(),
        isEdit,
        hasWritten: once(async () => (await host.kv(environment).get(writerKey(comment.userId))) !== undefined),
      };
      const verdict = await firstVerdict(rulesOf(config), draft);
      if (!isEdit) history.add(draft.user, draft.digest(), draft.now);
      return verdict;
    };
    const options = { priority: 200, onError: 'hold' } as const;
    host.filter('comment.create', ({ comment }, context) => decide(comment, context, false), options);
    host.filter('thread.create', ({ comment }, context) => decide(comment, context, false), options);
    host.filter('comment.update', ({ comment }, context) => decide(comment, context, true), options);
    for (const type of ['comment.created', 'thread.created'] as const) {
      host.action(type, async ({ actor }, { environment, config }) => {
        if (actor.userId !== null && config.rules.some((rule) => rule.type === 'first-comment'))
          await host.kv(environment).put(writerKey(actor.userId), 1);
      });
    }
    host.action(
      'user.updated',
      async (event, { environment }) => {
        const erased = erasedUserOf(event);
        if (erased !== null) await host.kv(environment).delete(writerKey(erased));
      },
      { whenKv: WRITER_PREFIX },
    );
  },
});

/** The verdict of the first rule that applies; a rejection comes before a hold. */
async function firstVerdict(rules: readonly CompiledRule[], draft: Draft): Promise<Hold | Rejection | undefined> {
  let held: Hold | undefined;
  for (const { rule, check } of rules) {
    if (held !== undefined && rule.action === 'hold') continue;
    const why = await check(draft);
    if (why === null) continue;
    if (rule.action === 'reject') return reject(rule.message ?? 'This was refused by the rules of this site', 403);
    held = hold(rule.name === undefined ? why : `${rule.name}: ${why}`);
  }
  return held;
}

function checkOf(rule: Rule, number: number, checks: ContentChecks, history: History): CompiledRule['check'] {
  switch (rule.type) {
    case 'words':
    case 'patterns':
    case 'links': {
      const check = checks.add(rule, number);
      return ({ text }) => check(text);
    }
    case 'repeats':
      return ({ digest, user, now, isEdit }) => {
        const times = isEdit ? 0 : history.count(user, rule.minutes, now, digest()) + 1;
        return times > rule.max ? `the same text ${times} times within ${rule.minutes} minutes` : null;
      };
    case 'rate':
      return ({ user, now, isEdit }) => {
        const times = isEdit ? 0 : history.count(user, rule.minutes, now) + 1;
        return times > rule.max ? `${times} comments within ${rule.minutes} minutes` : null;
      };
    case 'first-comment':
      return async ({ hasWritten, isEdit }) =>
        isEdit || (await hasWritten()) ? null : 'the first comment of this user';
  }
}

/** A function that is called at most once; later calls return the first result. */
function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}

/** The key of a user who has published something, in the storage of the plugin. */
function writerKey(userId: string): string {
  return `${WRITER_PREFIX}${createHash('sha256').update(userId).digest('base64url')}`;
}
