"""Highlight queries: tree-sitter patterns to roles. A later pattern wins where two match."""

from __future__ import annotations

PYTHON = r"""
["and" "as" "assert" "async" "await" "break" "class" "continue" "def" "del" "elif" "else" "except"
 "finally" "for" "from" "global" "if" "import" "in" "is" "lambda" "nonlocal" "not" "or" "pass" "raise"
 "return" "try" "while" "with" "yield" "match" "case"] @keyword
["+" "-" "*" "/" "//" "%" "**" "@" "=" "==" "!=" "<" "<=" ">" ">=" "+=" "-=" "*=" "/=" "//=" "%=" "&" "|"
 "^" "~" "<<" ">>" "->" ":=" "&=" "|=" "^=" "<<=" ">>="] @operator
[(integer) (float)] @number
[(true) (false) (none)] @builtin
(call function: (identifier) @function)
(call function: (attribute attribute: (identifier) @function))
((call function: (identifier) @builtin)
 (#match? @builtin "^(abs|all|any|bool|dict|enumerate|float|getattr|int|isinstance|len|list|map|max|min)$"))
((call function: (identifier) @builtin)
 (#match? @builtin "^(print|range|reversed|round|set|sorted|str|sum|super|tuple|type|zip)$"))
((identifier) @builtin (#match? @builtin "^(self|cls|tl|triton|torch)$"))
(function_definition name: (identifier) @function)
(class_definition name: (identifier) @type)
(type) @type
(decorator "@" @decorator)
(decorator (identifier) @decorator)
(decorator (attribute) @decorator)
(decorator (call function: (_) @decorator))
(keyword_argument name: (identifier) @plain)
(string) @string
(interpolation (_) @plain)
(comment) @comment
"""

C = r"""
["break" "case" "const" "continue" "default" "do" "else" "enum" "extern" "for" "goto" "if" "inline"
 "register" "return" "sizeof" "static" "struct" "switch" "typedef" "union" "volatile" "while"] @keyword
["--" "-" "-=" "->" "=" "!=" "*" "*=" "/" "/=" "%" "&" "&&" "+" "++" "+=" "<" "<=" "<<" ">>" "==" ">" ">="
 "||" "!" "|" "^" "~" "|=" "&=" "?" ":"] @operator
(number_literal) @number
[(true) (false) (null)] @builtin
[(type_identifier) (primitive_type) (sized_type_specifier)] @type
(type_qualifier) @keyword
(storage_class_specifier) @keyword
(call_expression function: (identifier) @function)
(call_expression function: (field_expression field: (field_identifier) @function))
(function_declarator declarator: (identifier) @function)
((call_expression function: (identifier) @builtin) (#match? @builtin "^(_mm|__builtin|_tile)"))
(attribute_specifier) @decorator
[(string_literal) (system_lib_string) (char_literal)] @string
["#define" "#elif" "#else" "#endif" "#if" "#ifdef" "#ifndef" "#include"] @decorator
(preproc_directive) @decorator
(preproc_call argument: (preproc_arg) @decorator)
(preproc_def name: (identifier) @type)
(preproc_function_def name: (identifier) @function)
(comment) @comment
"""

CPP = r"""
["catch" "class" "constexpr" "delete" "explicit" "final" "friend" "namespace" "new" "noexcept" "operator"
 "override" "private" "protected" "public" "template" "throw" "try" "typename" "using" "virtual"] @keyword
[(auto) (this)] @keyword
(namespace_identifier) @type
(qualified_identifier name: (identifier) @function)
(template_function name: (identifier) @function)
(raw_string_literal) @string
"""

CUDA = r"""
["__global__" "__device__" "__host__" "__shared__" "__constant__" "__restrict__" "__launch_bounds__"
 "__forceinline__"] @decorator
((identifier) @builtin (#match? @builtin "^(threadIdx|blockIdx|blockDim|gridDim|warpSize|__syncthreads)$"))
["<<<" ">>>"] @operator
"""
