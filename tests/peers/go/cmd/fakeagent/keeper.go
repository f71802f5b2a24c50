package main

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubetypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	workv1 "open-cluster-management.io/api/work/v1"
	"open-cluster-management.io/sdk-go/pkg/cloudevents/clients/common"
	"open-cluster-management.io/sdk-go/pkg/cloudevents/clients/work/payload"
	"open-cluster-management.io/sdk-go/pkg/cloudevents/generic"
	"open-cluster-management.io/sdk-go/pkg/cloudevents/generic/types"

	"maestropy/peers/jsonline"
)

// keeper holds the works of one cluster and says what their status is.
type keeper struct {
	lock    sync.Mutex
	works   map[kubetypes.UID]*workv1.ManifestWork
	queue   workqueue.TypedRateLimitingInterface[kubetypes.UID]
	release *sync.Cond
	held    bool
}

var statusUpdate = types.CloudEventsType{
	CloudEventsDataType: payload.ManifestBundleEventDataType,
	SubResource:         types.SubResourceStatus,
	Action:              types.UpdateRequestAction,
}

func newKeeper() *keeper {
	// A refused status is tried again, as the work agent does, but never later than a test is ready to wait.
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[kubetypes.UID](20*time.Millisecond, time.Second)
	k := &keeper{works: map[kubetypes.UID]*workv1.ManifestWork{}, queue: workqueue.NewTypedRateLimitingQueue(limiter)}
	k.release = sync.NewCond(&k.lock)
	return k
}

// List gives the SDK what it needs to answer and to ask for resyncs.
func (k *keeper) List(_ context.Context, _ types.ListOptions) ([]*workv1.ManifestWork, error) {
	k.lock.Lock()
	defer k.lock.Unlock()
	works := make([]*workv1.ManifestWork, 0, len(k.works))
	for _, work := range k.works {
		works = append(works, work.DeepCopy())
	}
	return works, nil
}

func (k *keeper) receive(_ context.Context, work *workv1.ManifestWork) error {
	k.lock.Lock()
	defer k.lock.Unlock()
	known, ok := k.works[work.UID]
	// Deletion is final: no spec that was still under way may bring the work back.
	if ok && work.DeletionTimestamp.IsZero() && (!known.DeletionTimestamp.IsZero() || work.Generation < known.Generation) {
		return nil
	}
	work = work.DeepCopy()
	if work.DeletionTimestamp.IsZero() {
		setConditions(work, "Resource is available")
	} else {
		setDeleted(work)
	}
	k.works[work.UID] = work
	k.queue.Add(work.UID)
	return nil
}

func (k *keeper) change(uid, message string) {
	k.lock.Lock()
	defer k.lock.Unlock()
	if work, ok := k.works[kubetypes.UID(uid)]; ok && work.DeletionTimestamp.IsZero() {
		setConditions(work, message)
		k.queue.Add(work.UID)
	}
}

func (k *keeper) pause(held bool) {
	k.lock.Lock()
	defer k.lock.Unlock()
	k.held = held
	k.release.Broadcast()
}

// report sends the status of one work after the other until the context ends.
func (k *keeper) report(ctx context.Context, client generic.CloudEventsClient[*workv1.ManifestWork]) {
	for {
		uid, closed := k.queue.Get()
		if closed || ctx.Err() != nil {
			return
		}
		work := k.next(uid)
		if work == nil {
			k.queue.Done(uid)
			continue
		}
		if err := client.Publish(ctx, statusUpdate, work); err != nil {
			jsonline.Write(line{Event: "status refused", Error: err.Error()})
			k.takeBack(work)
			k.queue.AddRateLimited(uid)
		} else {
			k.queue.Forget(uid)
		}
		k.queue.Done(uid)
	}
}

// next is the work to report. A deleting one leaves the store before its end is told: whoever hears of the end may use
// the name anew at once, and that new spec must not meet the old record.
func (k *keeper) next(uid kubetypes.UID) *workv1.ManifestWork {
	k.lock.Lock()
	defer k.lock.Unlock()
	for k.held {
		k.release.Wait()
	}
	work, ok := k.works[uid]
	if !ok {
		return nil
	}
	if !work.DeletionTimestamp.IsZero() {
		delete(k.works, uid)
	}
	return work.DeepCopy()
}

// takeBack keeps a deleting work whose end could not be told.
func (k *keeper) takeBack(work *workv1.ManifestWork) {
	k.lock.Lock()
	defer k.lock.Unlock()
	if _, ok := k.works[work.UID]; !ok {
		k.works[work.UID] = work
	}
}

func setConditions(work *workv1.ManifestWork, message string) {
	applied := condition(workv1.WorkApplied, "AppliedManifestWorkComplete", "Apply manifest work complete", work.Generation)
	available := condition(workv1.WorkAvailable, "ResourcesAvailable", message, work.Generation)
	meta.SetStatusCondition(&work.Status.Conditions, applied)
	meta.SetStatusCondition(&work.Status.Conditions, available)
	work.Status.ResourceStatus.Manifests = nil
	for ordinal := range work.Spec.Workload.Manifests {
		work.Status.ResourceStatus.Manifests = append(work.Status.ResourceStatus.Manifests, workv1.ManifestCondition{
			ResourceMeta: workv1.ManifestResourceMeta{Ordinal: int32(ordinal)},
			Conditions:   []metav1.Condition{stamped(applied), stamped(available)},
		})
	}
}

func setDeleted(work *workv1.ManifestWork) {
	meta.SetStatusCondition(&work.Status.Conditions, condition(
		common.ResourceDeleted, "ManifestsDeleted", "The manifests are deleted from the cluster "+work.Namespace, 0))
}

func condition(kind, reason, message string, generation int64) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message, ObservedGeneration: generation,
	}
}

func stamped(c metav1.Condition) metav1.Condition {
	c.LastTransitionTime = metav1.Now()
	return c
}
