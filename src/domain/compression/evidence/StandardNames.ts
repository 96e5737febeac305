/** Names that every program has, and a name without the variable before it. */

import { anchorKindOf } from "../Anchors.ts"

/** Modules, members and built-in names of common languages, which every agent knows. */
const standard =
  /^(?:(?:fmt|fs|os|io|maps|slices|MapSet|bufio|bytes|strings|strconv|errors|context|time|sync|sort|math|json|http|filepath|path|log|slog|regexp|reflect|testing|exec|rand|utf8|t|b|cmd|err|ctx|self|this|cls|sys|re|collections|itertools|functools|typing|datetime|logging|subprocess|unittest|np|pd|plt|console|process|window|document|navigator|localStorage|module|exports|require|import|Math|Object|Array|String|Number|Boolean|Promise|JSON|Date|Map|Set|RegExp|Symbol|Reflect|Buffer|Error|Enum|Stream|Keyword|List|IO|File|System|Path|Process|GenServer|Supervisor|Agent|Task|Logger|Regex|Integer|Float|Atom|Tuple|Code|Macro|Module|Kernel|Access|Base|Application|DateTime|NaiveDateTime|Time|URI|std|core|alloc|vec|Vec|Option|Result|Some|Ok|Err|Box|Rc|Arc)\.[\w.?!]+(?:\/\d+)?|(?:std|core|alloc)::[\w:]+|(?:get|set)(?:Item|State|Attribute)|use(?:State|Effect|Memo|Ref|Callback|Context)|(?:add|remove)EventListener|querySelector(?:All)?|className|innerHTML|textContent|forEach|toString|toLowerCase|toUpperCase|indexOf|includes|startsWith|endsWith|parseInt|parseFloat|isArray|stringify|hasOwnProperty|async\/await|and\/or|dev\/null|\/dev\/null|usr\/bin\/env|__init__|__name__|__main__|__file__|isinstance|TypeError|ValueError|KeyError|ReferenceError|SyntaxError|RuntimeError|ArgumentError|FunctionClauseError|readOnly|undefined|NaN)$/

/** Packages of Go's standard library: `encoding/json`. */
const standardPackage =
  /^(?:archive|compress|container|crypto|database|encoding|go|hash|html|image|index|io|log|math|mime|net|os|path|regexp|runtime|sync|testing|text|unicode)\/[a-z]+\d*$/

/** Members that values of any program have: `lines.length`, `output.split`. */
const standardMethod =
  /^[A-Za-z_$][\w$]*[?!]?\.(?:length|map|filter|split|slice|splice|trim|join|push|pop|includes|replace|replaceAll|match|find|some|every|reduce|sort|reverse|append|strip|startswith|endswith|toFixed|toString|substring|then|catch)[?!]?$/

/** Languages, services and files that most projects have, what their tools are called with, and the labels that agents put on results. */
const common =
  /^(?:Node\.js|TypeScript|JavaScript|GitHub|GitLab|README\.md|\.gitignore|--(?:help|version|verbose)|set(?:Timeout|Interval|Immediate)|clear(?:Timeout|Interval)|utf-8|application\/json|exit_code|P(?:GID|IDs)|user_note|duration_(?:ms|seconds)|require_escalated|sandbox_permissions|prefix_rule|task_(?:id|result)|total_tokens|tool_uses|tool_use_error|untrusted_context|timed_out|CreateProcess|toolu_\w+)$/

/** Whether every program has this name. */
export const isStandardName = (name: string): boolean =>
  standard.test(name) || standardPackage.test(name) || standardMethod.test(name) || common.test(name)

/** Returns what a name says beyond the variable before it (`point.ToolUseID`); undefined when that is nothing. */
export const ownName = (name: string): string | undefined => {
  if (!/^[a-z_$][\w$]*\./.test(name)) return name
  const own = name.slice(name.lastIndexOf(".") + 1)
  return anchorKindOf(own) === "symbol" ? own : undefined
}
