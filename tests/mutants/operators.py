"""Mutants: single small changes of a source file, found by reading its syntax tree."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
}


@dataclass(frozen=True)
class Mutant:
    """A change of one place of a file: the text from `start` to `end` becomes `after`."""

    path: str
    place: str
    """The dotted name of the function, class or module around it."""
    operator: str
    line: int
    start: int
    end: int
    before: str
    after: str

    @property
    def key(self) -> str:
        """The description of the mutant, which stays valid while the lines around it change."""
        return f"{self.place}: {self.before} -> {self.after}"

    def apply(self, source: str) -> str:
        return source[: self.start] + self.after + source[self.end :]


def find_mutants(source: str, path: str, module: str) -> list[Mutant]:
    """Return all mutants of a file, in the order of its text."""
    finder = _Finder(source, path, module)
    finder.visit(ast.parse(source))
    return sorted(finder.found, key=lambda mutant: (mutant.start, mutant.operator, mutant.after))


class _Finder(ast.NodeVisitor):
    def __init__(self, source: str, path: str, module: str) -> None:
        self.path, self.names = path, [module]
        self.lines = [0]
        for line in source.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))
        self.source, self.texts = source, source.splitlines()
        self.found: list[Mutant] = []
        self.is_default = False

    def add(self, operator: str, node: ast.expr | ast.stmt, after: str) -> None:
        start, end = self._position(node.lineno, node.col_offset), self._position(node.end_lineno, node.end_col_offset)
        before = " ".join(self.source[start:end].split())
        if isinstance(node, ast.expr):
            after = f"({after})"  # independent of the context
        if operator == "constant" and self.is_default:
            operator = "default"
        place = ".".join(self.names)
        self.found.append(Mutant(self.path, place, operator, node.lineno, start, end, before, after))

    def _position(self, line: int | None, column: int | None) -> int:
        """Return the position of a line and a column, which the tree counts in bytes."""
        assert line is not None
        return self.lines[line - 1] + len(self.texts[line - 1].encode()[:column].decode())

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.names.append(node.name)
        for part in node.body:
            self.is_default = isinstance(part, ast.AnnAssign)
            self.visit(part)
        self.is_default = False
        self.names.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if any("overload" in ast.unparse(decorator) for decorator in node.decorator_list):
            return
        self.names.append(node.name)
        self.is_default = True
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self.visit(default)
        self.is_default = False
        for part in node.body:
            self.visit(part)
        self.names.pop()

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None and "TypeAlias" not in ast.unparse(node.annotation):
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        """Leave out `repr=` of a dataclass field, which decides only what a debugger shows."""
        for part in [node.func, *node.args]:
            self.visit(part)
        for keyword in node.keywords:
            if not (keyword.arg == "repr" and ast.unparse(node.func) == "field"):
                self.visit(keyword.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave out f-strings: up to Python 3.11 the tree does not say where their parts are."""

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self.add("constant", node, repr(not node.value))
        elif isinstance(node.value, int | float):
            self.add("constant", node, repr(node.value + 1))

    def visit_Compare(self, node: ast.Compare) -> None:
        for i, old in enumerate(node.ops):
            for new in COMPARISONS[type(old)]:
                changed = copy.copy(node)
                changed.ops = [new() if j == i else op for j, op in enumerate(node.ops)]
                self.add("comparison", node, ast.unparse(changed))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        changed = copy.copy(node)
        changed.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self.add("boolean", node, ast.unparse(changed))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub):
            self.add("not" if isinstance(node.op, ast.Not) else "sign", node, ast.unparse(node.operand))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        text = (ast.Constant, ast.JoinedStr)
        is_text = any(
            isinstance(s, text) and not isinstance(getattr(s, "value", ""), int | float) for s in _sides(node)
        )
        if type(node.op) in ARITHMETIC and not is_text:
            changed = copy.copy(node)
            changed.op = ARITHMETIC[type(node.op)]()
            self.add("arithmetic", node, ast.unparse(changed))
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) == "TYPE_CHECKING":
            return
        self.add("condition", node.test, f"not ({ast.unparse(node.test)})")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.add("condition", node.test, f"not ({ast.unparse(node.test)})")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            self.add("return", node, "return None")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self.add("removed statement", node, "pass")
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.add("removed statement", node, "pass")
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self.add("removed statement", node, "pass")


def _sides(node: ast.BinOp) -> Iterator[ast.expr]:
    """Return the operands of a chain of operators."""
    for side in (node.left, node.right):
        yield from _sides(side) if isinstance(side, ast.BinOp) else (side,)
