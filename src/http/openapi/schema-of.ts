import type { Static, TSchema } from 'typebox';

type Frozen<T> = T extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : T extends object
    ? { readonly [Name in keyof T]: Frozen<T[Name]> }
    : T;

/** What a schema describes, if that is `T` with all of its fields and no others. */
type Describes<T, S extends TSchema> = [
  Frozen<Static<S>> extends T ? true : false,
  T extends Frozen<Static<S>> ? true : false,
  [keyof T, keyof Static<S>] extends [keyof Static<S>, keyof T] ? true : false,
] extends [true, true, true]
  ? unknown
  : 'the schema differs from the type';

/**
 * Returns a schema that describes what is sent as `T`, a type of `model`, which leads: the compiler refuses a schema with a
 * field more or less, or one of another type.
 */
export const schemaOf =
  <T>() =>
  <S extends TSchema>(schema: S & Describes<T, S>): S =>
    schema;
