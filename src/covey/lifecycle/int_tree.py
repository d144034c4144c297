"""A map from whole numbers that is a value: changing it gives another one, which shares nearly all of its parts.

A change costs the logarithm of the size (a big-endian Patricia tree). Whatever order it was filled in, equal maps have
equal trees, so that they can be compared and hashed. Each branch sums up what is below it: whoever looks for something
passes by the branches that have none of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

V = TypeVar("V")


class Leaf(NamedTuple, Generic[V]):
    key: int
    value: V
    traits: int = 0
    """What it is looked for by, as bits."""
    counted: int = 0
    """1 if it is to be counted."""
    highest: int = 0
    """A number of which the highest is to be known."""


class Branch(NamedTuple, Generic[V]):
    """All keys below it are the same above `bit`. The right ones have that bit, the left ones do not."""

    key: int
    """What the keys have in common: the bits above `bit`."""
    bit: int
    left: Node[V]
    right: Node[V]
    traits: int
    counted: int
    highest: int


Node = Leaf[V] | Branch[V]
Tree = Node[V] | None
"""None is empty."""


def get(tree: Tree[V], key: int) -> V | None:
    while isinstance(tree, Branch):
        tree = tree.right if key & tree.bit else tree.left
    return tree.value if tree and tree.key == key else None


def put(tree: Tree[V], leaf: Leaf[V]) -> Node[V]:
    """With this entry, in place of the one that has the same key."""
    if tree is None:
        return leaf
    node, key, above = tree, leaf.key, list[Branch[V]]()
    while isinstance(node, Branch) and key & -(node.bit << 1) == node.key:
        above.append(node)
        node = node.right if key & node.bit else node.left
    if key == node.key and isinstance(node, Leaf):
        return _rebuilt(above, key, leaf)
    bit = 1 << (key ^ node.key).bit_length() - 1
    return _rebuilt(above, key, _branch(bit, node, leaf) if key & bit else _branch(bit, leaf, node))


def drop(tree: Node[V], key: int) -> Tree[V]:
    """Without the entry of this key, which is there."""
    node, above = tree, list[Branch[V]]()
    while isinstance(node, Branch):
        above.append(node)
        node = node.right if key & node.bit else node.left
    if not above:
        return None
    last = above.pop()
    return _rebuilt(above, key, last.left if key & last.bit else last.right)


def drop_all(tree: Tree[V], keys: Sequence[int]) -> Tree[V]:
    """Without the entries of these keys, which are there: all of them in one go. As deep as the keys have bits."""
    if not keys:
        return tree
    if not isinstance(tree, Branch):
        return None
    left = drop_all(tree.left, [key for key in keys if not key & tree.bit])
    right = drop_all(tree.right, [key for key in keys if key & tree.bit])
    return _branch(tree.bit, left, right) if left and right else left or right


def select(tree: Tree[V], traits: int) -> Iterator[V]:
    """The entries with one of these traits, in the order of their keys."""
    unvisited = [tree]
    while unvisited:
        node = unvisited.pop()
        if node is None or not node.traits & traits:
            continue
        if isinstance(node, Leaf):
            yield node.value
        else:
            unvisited += (node.right, node.left)


def _rebuilt(above: Sequence[Branch[V]], key: int, node: Node[V]) -> Node[V]:
    """The branches of a path, the top first, with another node at its end."""
    for branch in reversed(above):
        sides = (branch.left, node) if key & branch.bit else (node, branch.right)
        node = _branch(branch.bit, *sides)
    return node


def _branch(bit: int, left: Node[V], right: Node[V]) -> Branch[V]:
    traits, counted = left.traits | right.traits, left.counted + right.counted
    highest = left.highest if left.highest > right.highest else right.highest
    return Branch(left.key & -(bit << 1), bit, left, right, traits, counted, highest)
