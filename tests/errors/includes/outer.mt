include "inner.mt"
