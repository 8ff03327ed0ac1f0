"""A program as it was written for Python 2.7; what it prints there is in tests/golden/python2.txt."""
import cPickle as pickle
import string
import sys
from StringIO import StringIO
from itertools import izip

class Meta(type):
    def __new__(mcs, name, bases, attributes):
        attributes["made"] = name
        return type.__new__(mcs, name, bases, attributes)

class Thing(object):
    __metaclass__ = Meta
    size = 7

    def swap(self, (first, second)):
	return second, first

    def next(self):
        return self.size

    def __nonzero__(self):
        return False

def layers(units):
    for unit in units:
        yield unit

hidden = map(int, "10,20".split(","))
print "layers", list(layers(hidden)), list(layers(hidden)), len(hidden), hidden[0]
print >>sys.stdout, 7 / 2, -7 / 2, 7 / 2.0, 7.0 // 2, 6 / 4 * 2
half = 9
half /= 2
thing = Thing()
thing.size /= 2
sizes = [5, 6]
sizes[0] /= 2
table = {"b": 2, "a": 1}
table["b"] /= 2
print half, thing.size, sizes, table["b"], bool(thing), thing.made, thing.next()
keys = table.keys()
keys.sort()
print keys, table.has_key("a"), sorted(table.iteritems()), 010, 0x10L, 1 <> 2, `half`
try:
    raise ValueError, "wrong"
except ValueError, error:
    print "caught", error
print reduce(lambda a, b: a + b, xrange(4)), zip("ab", [1, 2])[1], filter(None, [0, 1, 2]), thing.swap((1, 2))
exec "made = 3" in table
print table["made"], isinstance(u"x", unicode), isinstance("x", basestring), long(3), unichr(97), string.letters[:3]
print string.join(["a", "b"], "-"), list(izip([1], [2])), StringIO("text").read(), pickle.loads(pickle.dumps([1]))
print round(7 / 2 * 1.0), sum(x / 2 for x in range(4)), (lambda n: n / 2)(5), [1, 2, 3][len(keys) / 2]
