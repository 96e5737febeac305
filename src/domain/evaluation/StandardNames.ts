/** Names that come with a language: no agent has to be told them. The writer of snapshots has a list of its own, which this one must not share: a mistake in it would hide itself. */

/** Members of modules and objects that come with a language. */
const standardMember =
  /^(?:Access|Agent|Application|Array|Atom|Base|Boolean|Buffer|Code|Date|DateTime|Document|Enum|Error|File|Float|GenServer|IO|Integer|JSON|Kernel|Keyword|List|Logger|Macro|Map|MapSet|Math|Module|NaiveDateTime|Number|Object|Path|Process|Promise|Reflect|RegExp|Regex|Set|Stream|String|Supervisor|Symbol|System|Task|Time|Tuple|URI|bufio|bytes|collections|console|context|datetime|document|errors|exec|filepath|fmt|fs|functools|http|io|itertools|json|localStorage|log|logging|maps|math|module|navigator|np|os|path|pd|process|rand|re|reflect|regexp|slices|slog|sort|std|strconv|strings|subprocess|sync|sys|t|testing|time|typing|unittest|utf8|window)(?:\.[A-Za-z_]\w*[?!]?|::\w+)(?:\/\d+)?$/

/** Names that most programs of a language have. */
const standardName =
  /^(?:__(?:file|init|main|name)__|addEventListener|className|console|forEach|hasOwnProperty|indexOf|innerHTML|isArray|isinstance|parseFloat|parseInt|querySelector(?:All)?|removeEventListener|setTimeout|startsWith|endsWith|stringify|textContent|toLowerCase|toString|toUpperCase|use(?:Callback|Effect|Memo|Ref|State)|\/dev\/null)$/

/** Whether a name comes with a language, such as `fmt.Sprintf` or `Enum.map/2`. */
export const isStandardName = (name: string): boolean => standardMember.test(name) || standardName.test(name)
