/** A style sheet as text. */
declare module '*.css' {
  const sheet: string;
  export default sheet;
}
