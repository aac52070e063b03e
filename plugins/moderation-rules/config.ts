import * as Type from 'typebox';
import type { Static } from 'typebox';
import { patternFault } from './pattern-fault.ts';

const action = Type.Union([Type.Literal('hold'), Type.Literal('reject')], {
  default: 'hold',
  description: '`hold` for a moderator, or `reject` with a message.',
});
const common = {
  name: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: 'Shown to moderators as the reason.' })),
  action,
  message: Type.Optional(
    Type.String({ minLength: 1, maxLength: 300, description: 'What the author of rejected content is told.' }),
  ),
};

const WordsRule = Type.Object({
  type: Type.Literal('words'),
  words: Type.Array(Type.String({ minLength: 1, maxLength: 100 }), {
    minItems: 1,
    maxItems: 5_000,
    description: 'Words or phrases; a trailing * matches every ending.',
  }),
  ...common,
});
const PatternsRule = Type.Object({
  type: Type.Literal('patterns'),
  patterns: Type.Array(Type.String({ minLength: 1, maxLength: 500 }), {
    minItems: 1,
    maxItems: 100,
    description: 'Regular expressions in the syntax of RE2, which ignore case.',
  }),
  ...common,
});
const LinksRule = Type.Object({
  type: Type.Literal('links'),
  max: Type.Integer({ minimum: 0, maximum: 100, default: 2, description: 'The most links that a comment may have.' }),
  allow: Type.Array(Type.String({ minLength: 1, maxLength: 253 }), {
    default: [],
    maxItems: 500,
    description: 'Hosts that do not count; their subdomains neither.',
  }),
  ...common,
});
const RepeatsRule = Type.Object({
  type: Type.Literal('repeats'),
  max: Type.Integer({
    minimum: 1,
    maximum: 50,
    default: 2,
    description: 'How often a user may write the same text within the time.',
  }),
  minutes: Type.Integer({ minimum: 1, maximum: 1_440, default: 60 }),
  ...common,
});
const RateRule = Type.Object({
  type: Type.Literal('rate'),
  max: Type.Integer({
    minimum: 1,
    maximum: 1_000,
    description: 'How many comments and threads a user may write within the time.',
  }),
  minutes: Type.Integer({ minimum: 1, maximum: 1_440, default: 1 }),
  ...common,
});
const FirstCommentRule = Type.Object({ type: Type.Literal('first-comment'), ...common });

const RuleSchema = Type.Union([WordsRule, PatternsRule, LinksRule, RepeatsRule, RateRule, FirstCommentRule]);
/** One rule. */
export type Rule = Static<typeof RuleSchema>;

const Rules = Type.Array(RuleSchema, {
  default: [],
  maxItems: 100,
  description: 'Checked in order; the first that applies decides, but a rejection comes before a hold.',
});

/** The configuration of the plugin in an environment. */
export const ConfigSchema = Type.Object({
  rules: Type.Refine(
    Rules,
    (rules) => faultIn(rules) === null,
    (rules) => faultIn(rules) ?? '',
  ),
  exemptBackends: Type.Boolean({ default: true, description: 'Whether content from secret keys is not checked.' }),
  exemptModerators: Type.Boolean({ default: true, description: 'Whether content of moderators is not checked.' }),
});
export type Config = Static<typeof ConfigSchema>;

/** The fault of the first pattern that RE2 does not accept; null if it accepts all. */
function faultIn(rules: readonly Rule[]): string | null {
  for (const [index, rule] of rules.entries()) {
    const fault =
      rule.type === 'patterns' ? rule.patterns.map(patternFault).find((found) => found !== null) : undefined;
    if (fault !== undefined && fault !== null) return `must have valid patterns: rule ${index + 1} ${fault}`;
  }
  return null;
}
