data {
  train = idx("images", "labels")
  x     : f32[6, 2]
  label : class[3]
}
model {
  a = einsum("ij,jk", [x, x])
  b = einsum("ii->i", [x])
  c = einsum("ij,jk->ik", [x, x])
  d = einsum("ij,kj->il", [x, x])
  e = einsum("ijk->k", [x])
  f = einsum("ij,kj->ik", [x])
  y = a + b + c + d + e + f
}
train {
  loss      = cross_entropy(linear(flatten(y), 3), label)
  optimizer = sgd(0.1)
}
