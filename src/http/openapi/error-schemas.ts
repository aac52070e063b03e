import * as Type from 'typebox';

/** The body of a refusal. */
export const ErrorSchema = Type.Object({
  error: Type.String({ description: 'The field and the limit that it violates. The code is in X-Error-Code.' }),
});

/** The body of a refusal for a client that asks for `application/problem+json`. */
export const ProblemSchema = Type.Object({
  type: Type.String({ description: '`about:blank`: the title is that of the status.' }),
  title: Type.String(),
  status: Type.Integer(),
  detail: Type.String({ description: 'The field, the limit that it violates, and what was sent.' }),
  instance: Type.String({ description: '`#` and the `X-Request-Id` of the response.' }),
  code: Type.String({ description: 'As `X-Error-Code`.' }),
  errors: Type.Optional(
    Type.Array(
      Type.Object({
        path: Type.String({ description: 'The field or parameter, such as `position.x`.' }),
        message: Type.String(),
      }),
      { description: 'The refused fields, if they are known.' },
    ),
  ),
  error: Type.String({ description: 'As `detail`, as in responses without `Accept: application/problem+json`.' }),
});
