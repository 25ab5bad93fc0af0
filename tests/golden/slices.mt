# Parts of tensors: indices that drop an axis, ranges that keep it, counted from either end; of calls; in a repeat.
param first = 1
data {
  train = idx("x", "label")
  x     : f32[4, 6]
  label : class[3]
}
model {
  row    = x[0] + x[-1]
  column = x[:, 2] + relu(x)[ : , - 1 ]
  middle = x[first:3, 1 : -1]
  end    = x[2:]
  number = x[3, 5]
  same   = x[:]
  sum    = 0
  repeat i in 0..4 {
    sum = sum + x[i, i:i + 2]
  }
  parts  = concat([row, column, flatten(middle), flatten(end)[:3], (x * same)[1]^2, sum])
  scores = linear(parts, 3) + number + size(x[1:], 0) + x[1][2:3]
}
train {
  loss      = cross_entropy(scores, label)
  optimizer = sgd(0.1)
  batch     = 4
}
