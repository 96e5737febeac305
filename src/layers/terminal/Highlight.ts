/** Colours code for the terminal. */
export const make =
  (_onLoaded: () => void) =>
  (code: string, _language: string | undefined): Array<string> =>
    code.split("\n")
