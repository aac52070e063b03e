/** The cost of password hashes in tests, as `passwordLn` of a context: a real one takes half a second. */
export const CHEAP_LN = 4;
