/**
 * Names that come with a language, which every agent knows. The code that writes snapshots has its own list
 * (`compression/evidence/StandardNames.ts`). They stay separate: with a shared list, the measure could not see its mistakes.
 * The last three patterns are alike in both, so that the measure does not see mistakes in those.
 */

/** Members of modules and objects that come with a language. */
const standardMember =
  /^(?:Access|Agent|Application|Array|Atom|Base|Boolean|Buffer|Code|Date|DateTime|Document|Enum|Error|File|Float|GenServer|IO|Integer|JSON|Kernel|Keyword|List|Logger|Macro|Map|MapSet|Math|Module|NaiveDateTime|Number|Object|Path|Process|Promise|Reflect|RegExp|Regex|Set|Stream|String|Supervisor|Symbol|System|Task|Time|Tuple|URI|bufio|bytes|collections|console|context|datetime|document|errors|exec|filepath|fmt|fs|functools|http|io|itertools|json|localStorage|log|logging|maps|math|module|navigator|np|os|path|pd|process|rand|re|reflect|regexp|slices|slog|sort|std|strconv|strings|subprocess|sync|sys|t|testing|time|typing|unittest|utf8|window)(?:\.[A-Za-z_]\w*[?!]?|::\w+)(?:\/\d+)?$/

/** Names that most programs of a language have. */
const standardName =
  /^(?:__(?:file|init|main|name)__|addEventListener|className|console|forEach|hasOwnProperty|indexOf|innerHTML|isArray|isinstance|parseFloat|parseInt|querySelector(?:All)?|removeEventListener|startsWith|endsWith|stringify|textContent|toLowerCase|toString|toUpperCase|use(?:Callback|Effect|Memo|Ref|State)|\/dev\/null)$/

/** Packages of Go's standard library, which look like paths. */
const standardPackage =
  /^(?:archive|compress|container|crypto|encoding|hash|html|io|log|math|mime|net|os|path|regexp|runtime|sync|testing|text|unicode)\/(?:atomic|base64|binary|csv|exec|filepath|fs|fstest|gzip|hex|http|httptest|ioutil|json|rand|sha1|sha256|signal|slog|syntax|template|url|user|utf8|xml|zip|zlib)$/

/** What any value can do: `lines.length`. */
const ofAnyValue =
  /\.(?:length|map|filter|split|slice|splice|trim|join|push|pop|shift|concat|includes|replace|replaceAll|match|find|some|every|reduce|sort|reverse|append|strip|startswith|endswith|toFixed|substring|then|catch)[?!]?$/

/** Languages, services, files and options that most projects have. */
const everywhere =
  /^(?:Node\.js|TypeScript|JavaScript|GitHub|GitLab|README\.md|\.gitignore|--(?:help|version|verbose)|(?:set|clear)(?:Timeout|Interval)|setImmediate|utf-8|application\/json)$/

/** Abbreviations of several things, and places in a sequence: `IDs`, `N-1`. */
const inSentences = /^(?:[A-Z]{2,5}s|[NMijkmnx]-\d+)$/

/** Whether a name comes with a language or with every machine, such as `fmt.Sprintf`, `Enum.map/2`, `os/exec` or `/dev/null`. */
export const isStandardName = (name: string): boolean =>
  standardMember.test(name) ||
  standardName.test(name) ||
  standardPackage.test(name) ||
  ofAnyValue.test(name) ||
  everywhere.test(name) ||
  inSentences.test(name)
